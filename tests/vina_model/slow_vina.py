"""VINA again, slowly: plain loops over tokens, heads and channels from SPEC's formulas, in float64 and without torch.

One video at a time, without padding. It shares nothing with vina_model but the names of the parameters.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

Vector = np.ndarray
Matrix = list[Vector]


class SlowVina:
    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        vocabulary: Sequence[str],
        heads: int,
        step_positions: bool,
        shared: bool,
    ) -> None:
        self.weights, self.heads = weights, heads
        self.numbers = {word: number for number, word in enumerate(vocabulary, start=1)}
        self.step_mlp = "narration_mlp" if shared else "step_mlp"
        self.step_positions = step_positions

    def linear(self, x: Vector, name: str) -> Vector:
        answer: Vector = np.array([row @ x for row in self.weights[f"{name}.weight"]]) + self.weights[f"{name}.bias"]
        return answer

    def norm(self, x: Vector, name: str) -> Vector:
        mean = sum(x) / len(x)
        variance = sum((value - mean) ** 2 for value in x) / len(x)
        scaled = np.array([(value - mean) / math.sqrt(variance + 1e-5) for value in x])
        answer: Vector = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return answer

    def mlp(self, x: Vector, name: str) -> Vector:
        return self.norm(self.linear(quick_gelu(self.linear(x, f"{name}.0")), f"{name}.2"), f"{name}.3")

    def text(self, sentence: str) -> Vector:
        """Embedding, linear, ReLU, maximum over the known words, linear; sentences here are plain words and spaces."""
        hidden = [np.zeros(len(self.weights["text.fc1.bias"]))]
        for word in sentence.split():
            if word in self.numbers:
                vector = self.weights["text.word_embd.weight"][self.numbers[word]]
                hidden.append(np.maximum(self.linear(vector, "text.fc1"), 0))
        return self.linear(np.max(hidden, axis=0), "text.fc2")

    def unimodal(self, video: np.ndarray, narrations: Sequence[str], steps: Sequence[str]) -> tuple[Matrix, ...]:
        """H^v, H^n, H^s."""
        seconds = [
            self.mlp(x, "video_mlp") + self.weights["video_positions"][place] for place, x in enumerate(video)
        ]  # fmt: skip
        spoken = [
            self.mlp(self.text(sentence), "narration_mlp") + self.weights["narration_positions"][place]
            for place, sentence in enumerate(narrations)
        ]
        written = [self.mlp(self.text(sentence), self.step_mlp) for sentence in steps]
        if self.step_positions:
            written = [x + self.weights["step_positions"][place] for place, x in enumerate(written)]
        return seconds, spoken, written

    def attention(self, tokens: Matrix, name: str) -> Matrix:
        width = len(tokens[0])
        size = width // self.heads
        weight, bias = self.weights[f"{name}.in_proj_weight"], self.weights[f"{name}.in_proj_bias"]
        packed = [weight @ x + bias for x in tokens]
        outputs = []
        for mine in packed:
            seen: list[float] = []
            for head in range(self.heads):
                channels = range(head * size, (head + 1) * size)
                scores = [
                    sum(mine[c] * theirs[width + c] for c in channels) / math.sqrt(size) for theirs in packed
                ]  # fmt: skip
                shares = softmax(scores)
                for c in channels:
                    seen.append(
                        sum(share * theirs[2 * width + c] for share, theirs in zip(shares, packed, strict=True))
                    )
            outputs.append(self.linear(np.array(seen), f"{name}.out_proj"))
        return outputs

    def encoder(self, tokens: Matrix, layers: int) -> Matrix:
        for layer in range(layers):
            block = f"encoder.resblocks.{layer}"
            looked = self.attention([self.norm(x, f"{block}.ln_1") for x in tokens], f"{block}.attn")
            tokens = [x + change for x, change in zip(tokens, looked, strict=True)]
            hidden = [quick_gelu(self.linear(self.norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc")) for x in tokens]
            tokens = [x + self.linear(h, f"{block}.mlp.c_proj") for x, h in zip(tokens, hidden, strict=True)]
        return [self.norm(x, "norm") for x in tokens]

    def align(
        self, video: np.ndarray, narrations: Sequence[str], steps: Sequence[str], layers: int
    ) -> dict[str, np.ndarray]:
        """The three matrices, the indirect pathway and the fusion, by SPEC section 1."""
        seconds, spoken, written = self.unimodal(video, narrations, steps)
        tokens = self.encoder([*seconds, *spoken, *written], layers)
        seconds, rest = tokens[: len(seconds)], tokens[len(seconds) :]
        spoken, written = rest[: len(spoken)], rest[len(spoken) :]
        sv, nv, sn = cosines(written, seconds), cosines(spoken, seconds), cosines(written, spoken)
        snv = np.zeros((len(written), len(seconds)))
        for step in range(len(written)):
            if spoken:
                shares = softmax([value / 0.07 for value in sn[step]])
                for second in range(len(seconds)):
                    snv[step, second] = sum(shares[n] * nv[n, second] for n in range(len(spoken)))
        return {"sv": sv, "nv": nv, "sn": sn, "snv": snv, "fused": (sv + snv) / 2 if spoken else sv}


def quick_gelu(x: Vector) -> Vector:
    return np.array([value / (1 + math.exp(-1.702 * value)) for value in x])


def softmax(scores: Sequence[float]) -> list[float]:
    masses = [math.exp(score - max(scores)) for score in scores]
    return [mass / sum(masses) for mass in masses]


def cosines(rows: Matrix, columns: Matrix) -> np.ndarray:
    answer = np.zeros((len(rows), len(columns)))
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            answer[i, j] = sum(a * b) / math.sqrt(sum(a * a)) / math.sqrt(sum(b * b))
    return answer
