"""Counts the tokens of the samples in samples.json by two real tokenizers, and writes counts.json.

    pip install bpe-openai==0.1.4 && python tests/tokens/count.py

The vocabularies come with the package: nothing else is fetched.
"""

import json
import pathlib

import bpe_openai

HERE = pathlib.Path(__file__).parent
TOKENIZERS = ["cl100k_base", "o200k_base"]

samples = json.loads((HERE / "samples.json").read_text(encoding="utf-8"))
counts = {
    name: {
        tokenizer: len(bpe_openai.get_encoding(tokenizer).encode(text))
        for tokenizer in TOKENIZERS
    }
    for name, text in samples.items()
}
(HERE / "counts.json").write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
