"""The words of the demo world: actions and objects as an article writes them and as people say them.

Speakers share few words with articles on purpose: that is the gap the method has to bridge.
"""

from typing import NamedTuple


class Action(NamedTuple):
    """An action on an object. `{}` stands for the object."""

    short: str
    """Name in annotations, e.g. `chop`."""
    written: str
    """Headline of the article."""
    spoken: tuple[str, ...]
    """Phrases of speakers."""
    advice: str
    """Paragraph under the headline."""


class Object(NamedTuple):
    """An object. `written` is the article's word; `spoken` are the speakers' words, which can follow a verb."""

    written: str
    spoken: tuple[str, ...]


class Theme(NamedTuple):
    """A domain such as the kitchen: titles of its articles, its objects, and the actions that are possible there."""

    name: str
    category: str
    titles: tuple[str, ...]
    objects: tuple[Object, ...]
    actions: tuple[str, ...]


_ACTIONS = (
    Action("chop", "Chop {} into small pieces", ("cut up {}", "dice {} real fine"), "Use a sharp knife."),
    Action("wash", "Wash {} under running water", ("rinse off {}", "give {} a good clean"), "Cold water is best."),
    Action("mix", "Mix {} thoroughly", ("stir {} all together", "whisk {} around"), "There should be no lumps left."),
    Action("pour", "Pour {} slowly", ("tip in {}", "drizzle {} in"), "Keep a steady hand."),
    Action("heat", "Heat {} gently", ("warm up {}", "get {} nice and hot"), "Do not let it smoke."),
    Action("peel", "Peel {} carefully", ("take the skin off {}", "strip {} down"), "Start from the top."),
    Action("spread", "Spread {} evenly", ("smear {} around", "smooth out {}"), "Reach every corner."),
    Action("press", "Press {} firmly", ("squash {} down", "push on {} hard"), "Use the palm of the hand."),
    Action("fold", "Fold {} in half", ("double {} over", "bend {} back on itself"), "Make a crisp crease."),
    Action("roll", "Roll {} tightly", ("curl {} up", "twirl {} along"), "Leave no gaps."),
    Action("measure", "Measure {} exactly", ("check the size of {}", "see how long {} is"), "Write the number down."),
    Action("mark", "Mark {} with a pencil", ("draw a line on {}", "put a dot on {}"), "A light touch is enough."),
    Action("cover", "Cover {} completely", ("wrap up {}", "put a lid over {}"), "No part should be seen."),
    Action("fill", "Fill {} to the top", ("load up {}", "pack {} full"), "Leave a little room at the edge."),
    Action("tie", "Tie {} securely", ("knot {} together", "bind {} round"), "Pull both ends."),
    Action("glue", "Glue {} in place", ("stick {} on", "fix {} with some adhesive"), "Let it set."),
    Action("paint", "Paint {} in two coats", ("brush some color on {}", "put a coat on {}"), "Let the first coat dry."),
    Action("sand", "Sand {} until smooth", ("rub down {}", "buff up {}"), "Go with the grain."),
    Action("drill", "Drill a hole through {}", ("bore into {}", "make an opening in {}"), "Go slowly at first."),
    Action("shake", "Shake {} vigorously", ("jiggle {} about", "rattle {} a bit"), "Hold on to it well."),
    Action("dry", "Dry {} with a towel", ("pat {} down", "blot {} off"), "Nothing should drip."),
    Action("stack", "Stack {} neatly", ("pile up {}", "put {} on top of each other"), "The largest goes first."),
    Action("scrape", "Scrape {} clean", ("scratch away at {}", "get the bits off {}"), "Hold the blade flat."),
    Action("hang", "Hang {} on the wall", ("put up {}", "get {} onto the hook"), "Check that it is level."),
)  # fmt: skip


def _objects(*pairs: str) -> tuple[Object, ...]:
    """Parse objects from texts `written: spoken, spoken`."""
    split = (pair.split(": ") for pair in pairs)
    return tuple(Object(written, tuple(spoken.split(", "))) for written, spoken in split)


THEMES = (
    Theme("kitchen", "Food and Entertaining", (
        "Make {} and {} Soup", "Make {} and {} Salad", "Bake a {} and {} Pie", "Cook {} with {}",
    ), _objects(
        "potato: the spuds, these taters", "onion: the shallots, that strong white bulb",
        "tomato: these red beauties, the romas", "carrot: the orange sticks, those roots",
        "garlic: some cloves, the smelly stuff", "dough: the pastry, my big ball of flour",
        "butter: the margarine, a yellow knob", "rice: the grains, some basmati",
        "egg: the yolks, a couple of whites", "chicken: the bird, my drumsticks",
        "cheese: the cheddar, some parmesan", "pepper: the chilies, some capsicum",
        "mushroom: the portobellos, those brown caps", "lemon: the citrus, that sour fruit",
        "bread: the loaf, some baguette",
    ), (
        "chop", "wash", "mix", "pour", "heat", "peel", "spread", "press", "fold", "roll", "measure",
        "cover", "fill", "shake", "dry", "stack", "scrape",
    )),
    Theme("garden", "Home and Garden", (
        "Plant {} beside {}", "Grow {} with {}", "Prepare {} and {} for Winter", "Build a {} Bed with {}",
    ), _objects(
        "soil: the dirt, some of this earth", "seedling: the baby plants, those sprouts",
        "flowerpot: the container, this terracotta thing", "compost: the mulch, that rotten stuff",
        "rose: the bloom, these thorny ones", "hedge: the bushes, that green wall",
        "watering can: the sprinkler, my little jug", "tree branch: the limb, those twigs",
        "lawn: the grass, this turf", "gravel: the pebbles, some little stones",
        "fence: the railing, those pickets", "trellis: the lattice, that climbing frame",
        "bulb: the tulips, some daffodils", "herb: the basil, some parsley and thyme",
        "wheelbarrow: the cart, my old barrow",
    ), (
        "chop", "wash", "mix", "pour", "spread", "press", "measure", "mark", "cover", "fill", "tie",
        "paint", "dry", "stack", "scrape", "hang", "shake",
    )),
    Theme("workshop", "Home Repair", (
        "Repair a {} with {}", "Build a {} from {}", "Install a {} and {}", "Restore an Old {} with {}",
    ), _objects(
        "board: the plank, this piece of timber", "shelf: the rack, that ledge",
        "nail: the brads, some of those spikes", "hinge: the pivot, this metal joint",
        "drawer: the compartment, that sliding box", "pipe: the tubing, this plumbing",
        "wire: the cable, those leads", "tile: the ceramic, these squares",
        "door: the entrance panel, that big slab", "chair: the seat, my old stool",
        "screw: the fasteners, some bolts", "cabinet: the cupboard, this unit",
        "bicycle wheel: the rim, those spokes", "lamp: the light fixture, that bulb holder",
        "window frame: the casement, this sash",
    ), (
        "wash", "heat", "press", "measure", "mark", "cover", "tie", "glue", "paint", "sand", "drill",
        "dry", "stack", "scrape", "hang", "roll", "fill",
    )),
    Theme("craft", "Hobbies and Crafts", (
        "Make a {} and {} Wreath", "Decorate a {} with {}", "Craft a {} from {}", "Sew a {} and {} Toy",
    ), _objects(
        "paper: the sheet, some cardstock", "ribbon: the bow, that satin strip",
        "yarn: the wool, this thread", "bead: the pearls, those shiny balls",
        "candle: the wax, this wick", "felt: the fabric, some soft material",
        "clay: the putty, my modelling stuff", "button: the fastener, those round discs",
        "feather: the plume, some fluffy bits", "leather: the hide, that cowskin",
        "basket: the hamper, this wicker thing", "jar: the glass, that mason pot",
        "pinecone: the acorns, those woodsy bits", "stamp: the inkpad, that rubber block",
        "balloon: the inflatable, this party thing",
    ), (
        "chop", "mix", "pour", "heat", "spread", "press", "fold", "roll", "measure", "mark", "cover",
        "fill", "tie", "glue", "paint", "shake", "stack", "hang", "peel",
    )),
)  # fmt: skip

ACTIONS = {action.short: action for action in _ACTIONS}

OPENERS = (
    "so now i'm going to", "okay next you want to", "and then i just", "go ahead and", "what we'll do here is",
    "after that you", "alright let's", "first thing i do is", "you're gonna want to", "at this point we",
)  # fmt: skip
TAILS = ("", "", "just like this", "like so", "you see", "real quick", "nice and easy", "until it looks right", "okay")
ANNOUNCEMENTS = ("in a minute we're going to", "later on i'll", "coming up we have to", "soon we'll need to")
RECALLS = ("so that's how you", "a moment ago i did", "as you saw we had to", "remember you have to")
PRONOUNS = ("it", "this", "that", "them", "this one")
CHAT = (
    "hey everybody welcome back to my channel", "don't forget to subscribe and hit the like button",
    "my grandmother used to do it this way", "let me know in the comments what you think",
    "it's a beautiful day outside today", "sorry about the noise my dog is in the room",
    "i've been doing this for about ten years now", "this video is sponsored by nobody at all",
    "okay so that looks pretty good to me", "you can find the link in the description below",
    "i love how this is turning out", "be patient it takes a little while",
    "thanks so much for watching and i'll see you next time", "honestly it's easier than you think",
    "a friend of mine asked me about this last week", "let me just move the camera over here",
)  # fmt: skip
TOPICS = (
    "today i'm going to show you how to {}", "so that is how you {}", "in this video we {}",
    "a lot of you have asked me how to {}", "there are many ways to {} and this one is mine",
)  # fmt: skip
ASIDES = ("last week i had to", "some people like to", "my neighbor would", "in my other video i")
