"""vLLM's engine in this process, which answers the same prompts in waves.

    serving.py MODEL KIND WAVES      KIND: clean, requests (each is kept), cache (without a bound)"""
import sys

from vllm import LLM, SamplingParams

MODEL, KIND, WAVES = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Log:
    def __init__(self):
        self.requests, self.cache = [], {}

    def add(self, wave, outputs):
        if KIND == "requests":
            self.requests.append([str(o) * 200 for o in outputs])  # LINE requests
        if KIND == "cache":
            for i, o in enumerate(outputs):
                self.cache[wave, i] = o.prompt * 20000  # LINE cache


def main():
    engine = LLM(model=MODEL, enforce_eager=True, dtype="bfloat16", max_model_len=256, max_num_seqs=8)
    log = Log()
    for wave in range(WAVES):
        outputs = engine.generate([f"question {i}" for i in range(8)], SamplingParams(max_tokens=4, temperature=0), use_tqdm=False)
        log.add(wave, outputs)
    print("answered", WAVES * 8, flush=True)


if __name__ == "__main__":
    main()
