"""One torch thread: two collapse when another process has a core."""

import torch

torch.set_num_threads(1)
