"""Print what the installed PyTorch requires beside NVIDIA's libraries and Triton."""
import importlib.metadata
import re

for line in importlib.metadata.requires("torch"):
    name = re.match(r"[\w.-]+", line).group()
    if "extra ==" not in line and not re.match(r"nvidia|cuda|triton", name):
        print(line.partition(";")[0].replace(" ", ""))
