"""The sentences of the demo world: what stands around actions and objects in articles and in speech; rare words.

`{}` stands for an object, a title or an action on an object; `{number}` and the like for a word of `SLOTS`.
"""

SLOTS = {
    "number": ("two", "three", "four", "five", "six", "seven", "eight", "ten", "twelve", "fifteen", "twenty", "thirty"),
    "name": ("sarah", "mike", "jenny", "carlos", "priya", "tom", "anita", "dave", "mei", "olga", "kevin", "fatima"),
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "the weekend"),
    "month": ("january", "march", "april", "june", "july", "august", "october", "december"),
    "place": ("texas", "ohio", "london", "toronto", "sydney", "mumbai", "florida", "scotland", "oregon", "berlin"),
    "relative": ("grandmother", "dad", "mom", "sister", "uncle", "wife", "husband", "cousin", "brother", "aunt"),
    "pet": ("dog", "cat", "parrot", "rabbit", "hamster", "puppy", "kitten"),
    "shop": ("the dollar store", "the farmers market", "a garage sale", "the corner shop", "the internet", "costco"),
    "mood": ("happy", "excited", "nervous", "proud", "tired", "grateful", "surprised", "relieved"),
    "quality": ("great", "amazing", "gorgeous", "decent", "perfect", "lovely", "professional", "awesome"),
    "food": ("coffee", "pizza", "ice cream", "lunch", "tea", "pancakes", "a smoothie"),
    "weather": ("sunny", "cold", "rainy", "windy", "humid", "snowy", "hot out"),
}
"""Words that vary within a sentence."""

DETERMINERS = frozenset((
    "the", "a", "your", "my", "some", "this", "that", "these", "those", "each", "both", "of", "few", "one", "two",
    "three", "four", "five", "six", "ten",
))  # fmt: skip
"""Words before a noun. A rare word goes after the last of them."""

BEFORE = (
    "once the surface is dry", "before you go on", "when everything is ready", "if you have time", "for best results",
    "after {number} minutes", "working from left to right", "as soon as you can", "without hurrying", "to begin with",
    "when you are satisfied", "if necessary", "with a steady hand", "while you wait", "in the meantime",
    "after a short break", "on a level surface", "in a quiet corner", "to save time", "for a professional finish",
    "a day in advance", "with the help of a friend", "in good light", "when nothing moves any more",
)  # fmt: skip
"""Clauses before the verb of a headline."""
AFTER = (
    "taking care not to damage anything", "making sure that nothing is missed", "as shown in the picture",
    "before moving on", "and wait {number} minutes", "if the instructions call for it", "without using too much force",
    "for about {number} seconds", "at least {number} times", "until you are happy with the result", "in one go",
    "starting from the left", "on both sides", "and set everything aside", "to avoid a mess later",
    "while keeping your work area tidy", "following the manufacturer's advice", "according to your own taste",
    "so that the next step is easier", "whenever you need to", "depending on the season", "and repeat if needed",
    "as evenly as possible", "to get a better result",
)  # fmt: skip
"""Clauses after the object of a headline."""
EXPLANATIONS = (
    "This takes about {number} minutes.", "Ask a friend for help if you need it.", "Beginners often skip this.",
    "You can do this up to {number} hours ahead.", "There is no need to hurry.", "Work in a room with fresh air.",
    "Repeat {number} times if the result is not even.", "Some prefer to do this in the evening.", "Keep children away.",
    "The exact amount depends on your taste.", "Old newspaper keeps the floor clean.", "Wear gloves if you like.",
    "Professionals do this in less than {number} minutes.", "A mistake here is easy to correct.",
    "It is normal if it looks uneven at first.", "You will get better with practice.", "Rest between two attempts.",
    "If you are unsure, try on a spare one first.", "Do not skip this, even if you are in a rush.",
    "Store what is left over in a cool place.", "In winter this may take longer.", "Stop if anything looks wrong.",
)  # fmt: skip
"""Second sentences of a step's paragraph."""

OPENERS = (
    "so now i'm going to", "okay next you want to", "and then i just", "go ahead and", "what we'll do here is",
    "after that you", "alright let's", "first thing i do is", "you're gonna want to", "at this point we", "so i",
    "now it's time to", "um then you", "and what you do is", "here i like to", "you just", "now we can",
    "i'm just gonna", "so the next step is to", "and now you need to", "all you have to do is", "we're going to",
    "then real quick i", "the trick is to", "what i always do is", "let me", "be sure to", "now carefully",
    "as you can see i", "okay so we",
)  # fmt: skip
TAILS = (
    "just like this", "like so", "you see", "real quick", "nice and easy", "until it looks right", "okay", "right here",
    "for a couple minutes", "and that's it", "if that makes sense", "or whatever you prefer", "as best you can",
    "there", "don't be shy", "and it doesn't have to be perfect", "for like {number} seconds", "see that", "all right",
)  # fmt: skip
ANNOUNCEMENTS = (
    "in a minute we're going to", "later on i'll", "coming up we have to", "soon we'll need to", "in a little bit i'll",
    "in about {number} minutes we're gonna", "after this we'll", "don't forget that later we", "the plan is to",
)  # fmt: skip
RECALLS = (
    "so that's how you", "a moment ago i did", "as you saw we had to", "remember you have to", "earlier you saw me",
    "like i said before you", "that's why we had to", "and that was it you just", "about {number} minutes ago i did",
)  # fmt: skip
SUGGESTIONS = (
    "some people also", "you could also", "if you have time", "off camera i had to", "normally you would",
    "i'm not going to show it but you should", "in the instructions they tell you to", "the book says to",
    "if you want", "yesterday i had to", "before we started i had to", "i won't do it today but you can",
    "at home you may have to", "my friend {name} would", "{name} asked me whether you should",
)  # fmt: skip
"""Before a step that the video does not show."""
ASIDES = (
    "last week i had to", "some people like to", "my neighbor would", "in my other video i", "on {day} i'm going to",
    "my {relative} used to", "back in {month} i had to", "in {place} they", "next time i'll show you how to",
)  # fmt: skip
"""Before a step of another article."""
PRONOUNS = ("it", "this", "that", "them", "this one", "those", "the whole thing", "everything")
MENTIONS = (
    "i got {} at {shop}", "i found {} for {number} dollars", "{name} gave me {}", "you can see {} over here",
    "here i have {}", "so this right here would be {}", "i really love {}", "{} came from my {relative}",
    "i bought {} on {day}", "you will need {} for this", "just look at {}", "don't worry too much about {}",
    "{} cost me about {number} dollars", "i always have {} at home", "a lot of people ask me about {}",
    "i've had {} for {number} years", "make sure you have {} close by", "now about {}",
    "notice how {quality} {} looked", "we talked about {} in the last video", "i ordered {} from {place}",
    "my {relative} doesn't like {}", "let me show you {} up close", "there was a sale on {} at {shop}",
    "you don't have to have {} but i do",
)  # fmt: skip
"""An object is named; nothing is done with it."""
TOPICS = (
    "today i'm going to show you how to {}", "in this video we {}", "a lot of you have asked me how to {}",
    "there are many ways to {} and this one is mine", "so you want to {}", "my {relative} taught me how to {}",
    "i'm {name} and today we {}", "have you ever wanted to {}", "it takes about {number} minutes to {}",
    "{name} from {place} wrote to me and asked how to {}", "i only learned how to {} in {month}",
    "it's not that hard to {}", "this is my favorite way to {}", "on {day} i finally decided to {}",
)  # fmt: skip
RECAPS = (
    "so that is how you {}", "and that's all you need to {}", "now you know how to {}",
    "so there you have it how to {}", "in just {number} steps you learned to {}", "next time you {} think of me",
    "i hope this helps you to {}", "if you {} send me a picture", "and that's my way to {}",
    "now you can {} in {number} minutes", "tell {name} that even you can {}", "that was how we {} in {place}",
)  # fmt: skip

CHAT = (
    "hey everybody welcome back to my channel", "don't forget to subscribe and hit the like button",
    "my {relative} used to do it this way", "let me know in the comments what you think",
    "it's a beautiful day outside today", "sorry about the noise my {pet} is in the room",
    "i've been doing this for about {number} years now", "this video is sponsored by nobody at all",
    "okay so that looks pretty {quality} to me", "you can find the link in the description below",
    "i love how this is turning out", "be patient it takes a little while", "honestly it's easier than you think",
    "thanks so much for watching and i'll see you on {day}", "{name} asked me about this last {day}",
    "let me just move the camera over here", "i'm {name} and this is my {relative}", "hi guys it's {name} from {place}",
    "it's {weather} here in {place} today", "i have {number} kids so i have to be quick", "my {pet} is called {name}",
    "i didn't get any sleep last night", "oh my phone is ringing", "give me one second please",
    "i'm so {mood} right now", "we just hit {number} thousand subscribers", "i can't wait for {month}",
    "i grew up in {place} actually", "you guys have been asking for this since {month}",
    "i'm going to have some {food} after this", "what else", "it took me {number} tries to get here",
    "don't be afraid to make mistakes", "practice makes perfect", "my {relative} is coming over on {day}",
    "we moved here from {place} in {month}", "no worries", "isn't that {quality}",
    "that's what my {relative} always says", "if you have questions just ask", "i post a new video every {day}",
    "check out {name} over at the other channel", "i'm a bit {mood} to be honest", "so yeah", "oops my bad",
    "the battery died so i had to start again", "can you see that okay", "i hope the light is okay",
    "i know it doesn't look like much yet", "trust me on this one", "it's going to be {quality}",
    "that smells {quality}", "and we're back", "i was {number} years old when i started",
    "back in {place} nobody does it like this", "my {relative} thinks i'm crazy", "you can get everything at {shop}",
    "i spent maybe {number} dollars in total", "i had {food} this morning so i'm ready",
    "it's been a {weather} {month}", "i said {number} but i meant {number}", "the {pet} wants to help",
    "come here {name} say hello", "okay we're almost done", "this is my favorite part",
    "you might think that's too much but it's not", "it's {quality} for parties", "this would be a {quality} gift",
    "i usually listen to music while i do this", "follow me on instagram", "i'll put the times on the screen",
    "we'll come back to that in {number} minutes", "that makes me so {mood}", "time for some {food}",
    "my first one looked terrible", "let's see how that goes", "{name} if you're watching this i miss you",
    "i got the idea from {name} in {place}", "the last time i tried it was {weather}", "wow that is {quality}",
)  # fmt: skip

RARE_WORDS = (
    "heirloom", "rustic", "vintage", "bespoke", "wonky", "dinky", "proper", "bonnie", "gnarly", "sturdier", "hefty",
    "dainty", "petite", "robust", "pristine", "weathered", "speckled", "mottled", "knobbly", "lopsided", "velvety",
    "pungent", "fragrant", "blemished", "misshapen", "durable", "lightweight", "premium", "certified", "handmade",
    "reclaimed", "secondhand", "surplus", "regional", "seasonal", "native", "dwarf", "hardy", "tender", "crinkled",
    "ribbed", "quilted", "tapered", "bevelled", "burnished", "galvanized", "laminated", "lacquered", "tarnished",
    "tempered", "treated", "proofed", "cured", "brined", "marinated", "blanched", "parboiled", "caramelized",
    "leftover", "defrosted", "pitted", "wee", "braw", "muckle", "gurt", "tidy", "champion", "lush", "clarty", "wicked",
    "hella", "tatty", "manky", "naff", "posh", "swanky", "gimcrack", "jerry-built", "newfangled", "store-brand",
    "no-name", "hand-me-down", "bargain-bin", "belmora", "durapro", "homeworx", "kitchenmax", "gardenia-line",
    "proline", "maxigrip", "novaflex", "polytec", "primacraft", "rosendahl", "sunnybrook", "thornbury", "vandermeer",
    "westfield", "zentek", "quikfix", "nordhaus", "marwick", "lumena", "kestrel", "hartwell", "grenadier", "fairchild",
    "dunmore", "coppervale", "brightwell", "mcallister", "pemberton", "ridgeway", "silverline", "tilford", "varley",
    "whitcombe", "piebald", "dappled", "gossamer", "diaphanous", "crepuscular", "vermilion", "cerulean", "chartreuse",
    "maroon", "mauve", "taupe", "fuchsia", "teal", "turquoise", "periwinkle", "viridian", "sepia", "russet-toned",
    "puce", "heliotrope", "mahogany", "walnut-stained", "teak", "rattan", "bamboo", "hessian", "burlap", "muslin",
    "tweed", "corduroy", "paisley", "tartan", "houndstooth", "filigree", "damascene", "cloisonne", "millefleur",
    "rococo", "baroque", "shaker", "bauhaus", "deco-style", "victorian", "georgian", "tudor", "medieval", "prehistoric",
    "futuristic", "bioengineered", "biodegradable", "recyclable", "compostable", "hypoallergenic", "gluten-free",
    "fair-trade", "wild-caught", "sun-dried",
)  # fmt: skip
"""Words that occur seldom, the most frequent one first: the word of rank n is drawn n times less often."""
