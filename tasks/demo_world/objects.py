"""The objects of the demo world, theme by theme: names, words of articles, words of speakers."""

from typing import NamedTuple


class Object(NamedTuple):
    """A thing. `written` is its canonical name; `forms` are articles' words for it, `spoken` are the speakers'.

    Every phrase begins with a determiner (`phrases.DETERMINERS`): it is ready to follow a verb.
    """

    written: str
    forms: tuple[str, ...]
    spoken: tuple[str, ...]


def _objects(*lines: str) -> tuple[Object, ...]:
    """From `written: form, form | spoken, spoken`."""
    split = (line.replace(": ", " | ", 1).split(" | ") for line in lines)
    return tuple(Object(name, tuple(forms.split(", ")), tuple(spoken.split(", "))) for name, forms, spoken in split)


KITCHEN = _objects(
    "potato: the potatoes, your potatoes, a large potato, three peeled potatoes | "
    "the spuds, these taters, my russets, those maris pipers",
    "onion: the onions, one yellow onion, a medium onion, the chopped onion | "
    "the shallots, those tearjerkers, my vidalias, some scallions",
    "tomato: the tomatoes, two ripe tomatoes, your tomatoes, a firm tomato | "
    "these red beauties, the romas, some cherry ones, my beefsteaks",
    "carrot: the carrots, four carrots, a long carrot, your carrots | "
    "the orange sticks, those roots, some rabbit food, my nantes",
    "garlic: the garlic, three cloves of garlic, a head of garlic, your garlic | "
    "the smelly stuff, that vampire repellent, these little toes",
    "dough: the dough, your dough, a ball of dough, the rest of the dough | "
    "the pastry, my flour blob, this squidgy mass, the crust",
    "butter: the butter, a stick of butter, some softened butter, your butter | "
    "the margarine, a yellow knob, this creamy block, some fat",
    "rice: the rice, one cup of rice, the cooked rice, your rice | the grains, some basmati, this jasmine, my arborio",
    "egg: the eggs, two eggs, one large egg, the fresh eggs | "
    "the yolks, a couple of whites, these free range guys, my little ovals",
    "chicken: the chicken, one whole chicken, the chicken breasts, your chicken | "
    "the bird, my drumsticks, some thighs, this poultry",
    "cheese: the cheese, a block of cheese, the grated cheese, some soft cheese | "
    "the cheddar, some parmesan, this gouda, my mozzarella",
    "pepper: the peppers, one red pepper, two bell peppers, your peppers | "
    "the chilies, some capsicum, these jalapenos, my hot guys",
    "mushroom: the mushrooms, a handful of mushrooms, your mushrooms, some fresh mushrooms | "
    "the portobellos, those brown caps, some shiitakes, this fungus",
    "lemon: the lemons, one fresh lemon, the halved lemon, two lemons | "
    "the citrus, that sour fruit, some limes, this zesty fella",
    "bread: the bread, two slices of bread, a loaf of bread, some stale bread | "
    "the baguette, some sourdough, my toast, this crusty rye",
)
GARDEN = _objects(
    "soil: the soil, the rest of the soil, some loose soil, your potting soil | "
    "the dirt, some of this earth, my loam, that muddy stuff",
    "seedling: the seedlings, each young seedling, your seedlings, three seedlings | "
    "the baby plants, those sprouts, these little greens, my starts",
    "flowerpot: the flowerpot, a clean flowerpot, two flowerpots, your pot | "
    "the container, this terracotta thing, that planter, my tub",
    "compost: the compost, some ripe compost, a bucket of compost, your compost | "
    "the mulch, that rotten stuff, some manure, my black gold",
    "rose: the roses, a rose bush, your roses, one climbing rose | "
    "the bloom, these thorny ones, my floribundas, some hybrid teas",
    "hedge: the hedge, your hedge, a low hedge, the whole hedge | the bushes, that green wall, my privet, this boxwood",
    "watering can: the watering can, your watering can, a small watering can, the metal can | "
    "the sprinkler, my little jug, that spouty thing, this pitcher",
    "tree branch: the tree branch, a thick branch, two tree branches, each lower branch | "
    "the limb, those twigs, this bough, some sticks",
    "lawn: the lawn, your lawn, a patch of lawn, the front lawn | the grass, this turf, my yard, that green carpet",
    "gravel: the gravel, a bag of gravel, some coarse gravel, the remaining gravel | "
    "the pebbles, some little stones, this shingle, those chippings",
    "fence: the fence, your fence, one fence panel, the garden fence | "
    "the railing, those pickets, my palings, this barrier",
    "trellis: the trellis, a wooden trellis, your trellis, one side of the trellis | "
    "the lattice, that climbing frame, this plant ladder, my arbor",
    "bulb: the bulbs, six bulbs, your flower bulbs, a healthy bulb | "
    "the tulips, some daffodils, these crocuses, my hyacinths",
    "herb: the herbs, a bunch of herbs, your herbs, some fresh herbs | "
    "the basil, some parsley and thyme, my rosemary, this mint",
    "wheelbarrow: the wheelbarrow, your wheelbarrow, a sturdy wheelbarrow, the full barrow | "
    "the cart, my one wheeler, that rusty trolley, this pushcart",
)
WORKSHOP = _objects(
    "board: the board, each board, two wooden boards, your board | "
    "the plank, this piece of timber, my pine, some lumber",
    "shelf: the shelf, each shelf, your shelf, a wall shelf | the rack, that ledge, this mantel, my storage bit",
    "nail: the nails, a few nails, four long nails, your nails | the brads, some of those spikes, these pins, my tacks",
    "hinge: the hinge, both hinges, a brass hinge, your hinges | "
    "the pivot, this metal joint, that swingy bit, my swivel",
    "drawer: the drawer, each drawer, the bottom drawer, your drawer | "
    "the compartment, that sliding box, this pull out, my junk tray",
    "pipe: the pipe, a copper pipe, both pipes, your water pipe | the tubing, this plumbing, that conduit, my pvc",
    "wire: the wire, a length of wire, two wires, your wire | the cable, those leads, this flex, my cords",
    "tile: the tiles, each tile, one row of tiles, your tiles | "
    "the ceramic, these squares, my subway ones, some porcelain",
    "door: the door, your door, the front door, a heavy door | the entrance panel, that big slab, this way in, my gate",
    "chair: the chair, your chair, a wooden chair, each chair | the seat, my old stool, this rocker, that recliner",
    "screw: the screws, four screws, your screws, a wood screw | "
    "the fasteners, some bolts, these threaded guys, my torx",
    "cabinet: the cabinet, your cabinet, a wall cabinet, the kitchen cabinet | "
    "the cupboard, this unit, that armoire, my sideboard",
    "bicycle wheel: the bicycle wheel, the front wheel, each bicycle wheel, a bike wheel | "
    "the rim, those spokes, this tire, my hoop",
    "lamp: the lamp, your lamp, a table lamp, the old lamp | "
    "the light fixture, that bulb holder, this lantern, my sconce",
    "window frame: the window frame, your window frame, each window frame, one old window | "
    "the casement, this sash, that sill, my glazing",
)
CRAFT = _objects(
    "paper: the paper, one sheet of paper, some colored paper, your paper | "
    "the cardstock, some origami stuff, this newsprint, my construction page",
    "ribbon: the ribbon, a length of ribbon, some red ribbon, your ribbon | "
    "the bow, that satin strip, this trim, my grosgrain",
    "yarn: the yarn, a ball of yarn, some thick yarn, your yarn | the wool, this thread, that skein, my merino",
    "bead: the beads, a handful of beads, ten small beads, your beads | "
    "the pearls, those shiny balls, these sparklies, my crystals",
    "candle: the candle, each candle, two candles, a tall candle | the wax, this wick, that taper, my tealights",
    "felt: the felt, a piece of felt, two squares of felt, your felt | "
    "the fabric, some soft material, this fuzzy cloth, my fleece",
    "clay: the clay, a lump of clay, your clay, some soft clay | the putty, my modelling stuff, this fimo, that mud",
    "button: the buttons, two buttons, a large button, your buttons | "
    "the toggles, those round discs, these snaps, my coat closers",
    "feather: the feathers, one long feather, your feathers, a few feathers | "
    "the plume, some fluffy bits, this tickler, those quills",
    "leather: the leather, a strip of leather, your leather, the soft leather | "
    "the hide, that cowskin, this suede, my pleather",
    "basket: the basket, your basket, a small basket, each basket | "
    "the hamper, this wicker thing, that woven tote, my picnic carrier",
    "jar: the jar, a clean jar, each glass jar, your jar | the bottle, that mason pot, this preserve tub, my kilner",
    "pinecone: the pinecones, five pinecones, a large pinecone, your pinecones | "
    "the acorns, those woodsy bits, these spiky guys, my forest finds",
    "stamp: the stamp, your stamp, a rubber stamp, the wooden stamp | "
    "the inkpad, that print block, this picture maker, my seal",
    "balloon: the balloon, each balloon, three balloons, your balloon | "
    "the inflatable, this party thing, that floaty, my airship",
)
