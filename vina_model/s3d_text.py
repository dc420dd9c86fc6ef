"""The text tower of the MIL-NCE checkpoint: word ids to the 512-d space it shares with the video tower.

Chosen: a module of its own, because TAN carries a further trained copy of it under another name (`bert`,
`lang_model`) and differs only in masking the padding. Nearly all of its 84 MB is the word table.
"""

# N sentences, L words of a sentence, K = 2048 hidden units, E = 512 joint text-video dimensions.

import math

from torch import Tensor, nn
from torch.nn import functional as F

from vina_model.tokenizer import VOCABULARY_SIZE

WORD_WIDTH, HIDDEN_WIDTH, JOINT_WIDTH = 300, 2048, 512


class TextTower(nn.Module):
    """Embeds each word, one hidden layer, the maximum over the words, a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.word_embd = nn.Embedding(VOCABULARY_SIZE + 1, WORD_WIDTH)
        self.fc1 = nn.Linear(WORD_WIDTH, HIDDEN_WIDTH)
        self.fc2 = nn.Linear(HIDDEN_WIDTH, JOINT_WIDTH)

    def forward(self, ids_NL: Tensor, mask_zeros: bool = False) -> Tensor:
        """Ids N x L, L >= 1, to N x E. MIL-NCE lets the padding take part in the maximum; TAN asks for `mask_zeros`.

        With the mask, a sentence of zeros alone keeps all its positions.
        """
        hidden_NLK = F.relu(self.fc1(self.word_embd(ids_NL)))
        if mask_zeros:
            known_NL = ids_NL != 0
            hidden_from_max_NL = ~known_NL & known_NL.any(dim=1, keepdim=True)
            hidden_NLK = hidden_NLK.masked_fill(hidden_from_max_NL[:, :, None], -math.inf)
        return self.fc2(hidden_NLK.amax(dim=1))
