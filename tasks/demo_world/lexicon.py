"""The words of the demo world: actions and objects as articles write them and as people say them.

An action or an object has several phrases of each kind. No word that matters is in both: that is the gap the method has
to bridge. `objects.py` holds the objects, `phrases.py` the sentences around them.
"""

from typing import NamedTuple

from tasks.demo_world.objects import CRAFT, GARDEN, KITCHEN, WORKSHOP, Object


class Action(NamedTuple):
    """What is done to an object. `{}` stands for the object."""

    short: str
    """As an annotator writes it, e.g. `chop`."""
    written: tuple[str, ...]
    """As headlines say it, in lower case; the first phrase is the canonical one."""
    tool: str
    """What an article may say that it is done with."""
    spoken: tuple[str, ...]
    """As speakers say it."""
    advice: tuple[str, ...]
    """Explanations under a headline."""


class Theme(NamedTuple):
    """A field of life: what its articles are called, what its objects are, which actions make sense there."""

    name: str
    category: str
    titles: tuple[str, ...]
    objects: tuple[Object, ...]
    actions: tuple[str, ...]


_ACTIONS = (
    Action("chop", (
        "chop {} into small pieces", "cut {} into chunks", "dice {} finely", "slice {} into thin strips",
        "mince {} as finely as you can",
    ), "a sharp knife", (
        "hack {} up", "break {} down real tiny", "take the blade to {}", "go at {} with my cleaver", "whack {} apart",
    ), ("Use a sharp knife.", "Keep your fingers out of the way.")),
    Action("wash", (
        "wash {} under running water", "rinse {} thoroughly", "clean {} with cold water",
        "scrub {} until no dirt is left", "rinse the dust off {}",
    ), "a bowl of cold water", (
        "give {} a good bath", "hose {} down", "get all the muck off {}", "hold {} under the tap",
        "swish {} around in the sink", "freshen {} up",
    ), ("Cold water is best.", "Change the water when it is cloudy.")),
    Action("mix", (
        "mix {} thoroughly", "stir {} until well combined", "combine {} with the rest", "blend {} until smooth",
        "whisk {} for a minute",
    ), "a wooden spoon", (
        "beat {} up", "work {} through", "get {} all jumbled up", "give {} a good whirl", "swirl {} around",
        "muddle {} together",
    ), ("There should be no lumps left.", "Start slowly and speed up.")),
    Action("pour", (
        "pour {} slowly", "add {} in a thin stream", "tip {} out gently", "empty {} into a bowl",
        "trickle {} in little by little",
    ), "a funnel", (
        "drizzle {} over", "slosh {} on in there", "dump {} in", "let {} flow", "glug {} right in", "splash {} on top",
    ), ("Keep a steady hand.", "Stop when the level is right.")),
    Action("heat", (
        "heat {} gently", "warm {} over a low flame", "bring {} up to temperature", "warm {} slowly",
        "expose {} to moderate heat",
    ), "a small burner", (
        "get {} nice and toasty", "crank up the temp on {}", "put a bit of fire under {}", "let {} get really hot",
        "cook {} a little", "zap {} for a bit",
    ), ("Do not let it smoke.", "A low flame takes longer and is safer.")),
    Action("peel", (
        "peel {} carefully", "remove the skin from {}", "strip the outer layer off {}", "pare {} thinly",
        "pull the outside off {}",
    ), "a paring knife", (
        "get the jacket off {}", "undress {}", "take {} out of its wrapper", "shave {} down", "shuck {}",
    ), ("Start from the top.", "Long strokes waste less.")),
    Action("spread", (
        "spread {} evenly", "distribute {} across the surface", "smooth {} out into one layer", "lay {} out flat",
        "scatter {} over the whole area",
    ), "a spatula", (
        "smear {} around", "slather {} about", "swipe {} from side to side", "get {} everywhere", "fan {} out",
    ), ("Reach every corner.", "No bare spots should be left.")),
    Action("press", (
        "press {} firmly", "push {} down with both hands", "flatten {} with your palm", "squeeze {} tightly",
        "apply pressure to {}",
    ), "a heavy book", (
        "squash {} a bit", "squish {} real good", "lean on {}", "mash {} in there", "give {} a hard shove",
        "put some weight on {}",
    ), ("Use the palm of the hand.", "Hold for a few seconds.")),
    Action("fold", (
        "fold {} in half", "bend {} over once", "crease {} along the middle", "tuck the edges of {} under",
        "turn one side of {} over the other",
    ), "the edge of a table", (
        "double {} up", "flip {} onto itself", "make a little sandwich out of {}", "bring {} back on itself",
        "close {} like a letter", "crimp {} down the center",
    ), ("Make a crisp crease.", "The corners should meet.")),
    Action("roll", (
        "roll {} tightly", "wind {} into a coil", "curl {} up from one end", "turn {} into a cylinder",
        "shape {} into a tube",
    ), "a wooden dowel", (
        "twirl {} along", "make a sausage out of {}", "spin {} round and round", "wrap {} around itself",
        "make a burrito with {}",
    ), ("Leave no gaps.", "Begin at the end that is closest to you.")),
    Action("measure", (
        "measure {} exactly", "determine the size of {}", "take the dimensions of {}", "check the length of {}",
        "weigh or measure {}",
    ), "a tape measure", (
        "see how big {} might be", "eyeball {}", "get the numbers on {}", "hold my yardstick against {}",
        "figure out how many inches for {}",
    ), ("Write the number down.", "Check twice to be sure.")),
    Action("mark", (
        "mark {} with a pencil", "trace an outline on {}", "indicate the position on {}", "draw a line across {}",
        "label {} clearly",
    ), "a soft pencil", (
        "put a dot on {}", "scribble on {}", "make a little x on {}", "jot a squiggle on {}", "doodle a guide on {}",
    ), ("A light touch is enough.", "The line should be easy to erase.")),
    Action("cover", (
        "cover {} completely", "wrap {} in foil", "place a lid over {}", "seal {} under plastic",
        "enclose {} on all sides",
    ), "a clean cloth", (
        "put {} to bed", "throw a blanket on {}", "hide {} away", "cap {} off", "bundle {} up",
        "drape something across {}",
    ), ("No part should be seen.", "Air must not get in.")),
    Action("fill", (
        "fill {} to the top", "load {} to the brim", "top {} up", "pack {} to capacity", "stuff {} generously",
    ), "a small scoop", (
        "cram {} right up", "jam {} till nothing else fits", "plump {} up", "put as much in {} as you can",
        "use up all the room in {}",
    ), ("Leave a little room at the edge.", "Tap the side to settle the contents.")),
    Action("tie", (
        "tie {} securely", "knot {} at both ends", "fasten {} with string", "bind {} together",
        "secure {} with a double knot",
    ), "a piece of string", (
        "lash {} up", "loop a cord round {}", "hitch {} on", "cinch {} up good", "truss {} up", "strap {} down",
    ), ("Pull both ends.", "The knot should not slip.")),
    Action("glue", (
        "glue {} in place", "attach {} with adhesive", "apply glue to {}", "bond {} to the surface", "cement {} down",
    ), "a glue gun", (
        "stick {} on", "paste {} on there", "get {} good and tacky", "slap some goop on {}", "make {} stay put",
    ), ("Let it set.", "Wipe off what oozes out.")),
    Action("paint", (
        "paint {} in two coats", "apply a coat of paint to {}", "color {} with a brush", "coat {} evenly with paint",
        "varnish {} from top to bottom",
    ), "a fine brush", (
        "slap some pigment on {}", "give {} a fresh look", "make {} all pretty and bright",
        "touch {} up with emulsion", "do {} in blue", "jazz {} up",
    ), ("Let the first coat dry.", "Thin coats look better than thick ones.")),
    Action("sand", (
        "sand {} until smooth", "smooth {} with sandpaper", "grind the edges of {}", "polish {} with a fine grit",
        "file {} down",
    ), "fine sandpaper", (
        "rub {} down", "buff {} up", "take the roughness off {}", "get {} silky", "scuff {} a bit",
        "get the splinters out of {}",
    ), ("Go with the grain.", "Wear a mask against the dust.")),
    Action("drill", (
        "drill a hole through {}", "bore through {}", "make a pilot hole in {}", "pierce {} near the edge",
        "drill into {} at the mark",
    ), "an electric drill", (
        "poke a gap in {}", "go straight in {} with the power tool", "spin the bit into {}", "punch one in {}",
        "put a screw sized opening in {}",
    ), ("Go slowly at first.", "Clamp the work before you start.")),
    Action("shake", (
        "shake {} vigorously", "agitate {} for a few seconds", "move {} rapidly back and forth",
        "swing {} from side to side", "toss {} until loose",
    ), "both hands", (
        "jiggle {} about", "rattle {} a bit", "wiggle {} around", "give {} a good wobble", "bounce {} up and down",
        "rock {} like a baby",
    ), ("Hold on to it well.", "Ten seconds are enough.")),
    Action("dry", (
        "dry {} with a towel", "wipe {} until no moisture remains", "leave {} to dry in the air", "blot {} gently",
        "remove all water from {}",
    ), "a soft towel", (
        "pat {} off", "dab {} a little", "get the wet out of {}", "mop {} up", "let {} sit in the sun", "blow on {}",
    ), ("Nothing should drip.", "Do not rub.")),
    Action("stack", (
        "stack {} neatly", "arrange {} in a pile", "place {} on top of one another", "layer {} in rows",
        "set {} one above the other",
    ), "a flat base", (
        "build a tower with {}", "put {} up high", "make a little pyramid of {}", "lump {} together",
        "balance {} like blocks",
    ), ("The largest goes first.", "Make sure that nothing leans.")),
    Action("scrape", (
        "scrape {} clean", "remove the residue from {}", "scour {} with a blade", "strip the old layer off {}",
        "clear the surface of {}",
    ), "a putty knife", (
        "scratch away at {}", "get the gunk off {}", "chip at {}", "claw the crud off {}", "dig the bits off {}",
    ), ("Hold the blade flat.", "Work away from your body.")),
    Action("hang", (
        "hang {} on the wall", "suspend {} from a hook", "mount {} at eye level", "attach {} to the wall",
        "fix {} to a bracket",
    ), "a strong hook", (
        "hoist {} up there", "dangle {} over here", "pop {} up high", "string {} up", "sling {} over the peg",
    ), ("Check that it is level.", "Use a fixing that carries the weight.")),
)  # fmt: skip

THEMES = (
    Theme("kitchen", "Food and Entertaining", (
        "Make {} and {} Soup", "Make {} and {} Salad", "Bake a {} and {} Pie", "Cook {} with {}",
    ), KITCHEN, (
        "chop", "wash", "mix", "pour", "heat", "peel", "spread", "press", "fold", "roll", "measure",
        "cover", "fill", "shake", "dry", "stack", "scrape",
    )),
    Theme("garden", "Home and Garden", (
        "Plant {} beside {}", "Grow {} with {}", "Prepare {} and {} for Winter", "Build a {} Bed with {}",
    ), GARDEN, (
        "chop", "wash", "mix", "pour", "spread", "press", "measure", "mark", "cover", "fill", "tie",
        "paint", "dry", "stack", "scrape", "hang", "shake",
    )),
    Theme("workshop", "Home Repair", (
        "Repair a {} with {}", "Build a {} from {}", "Install a {} and {}", "Restore an Old {} with {}",
    ), WORKSHOP, (
        "wash", "heat", "press", "measure", "mark", "cover", "tie", "glue", "paint", "sand", "drill",
        "dry", "stack", "scrape", "hang", "roll", "fill",
    )),
    Theme("craft", "Hobbies and Crafts", (
        "Make a {} and {} Wreath", "Decorate a {} with {}", "Craft a {} from {}", "Sew a {} and {} Toy",
    ), CRAFT, (
        "chop", "mix", "pour", "heat", "spread", "press", "fold", "roll", "measure", "mark", "cover",
        "fill", "tie", "glue", "paint", "shake", "stack", "hang", "peel",
    )),
)  # fmt: skip

ACTIONS = {action.short: action for action in _ACTIONS}
