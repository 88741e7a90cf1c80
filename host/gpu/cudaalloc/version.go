package cudaalloc

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
)

var versionLine = lazyregexp.New(`(?m)^__version__ *= *['"]([^'"]+)['"]`)

// version returns the version of PyTorch, according to its package in the process.
func version(im *image.Image) string {
	for _, m := range im.Map.Mappings {
		folder, name := path.Split(m.Path)
		if !strings.HasPrefix(name, "_C.") || path.Base(folder) != "torch" {
			continue
		}
		f, err := im.Process.OpenFile(folder + "version.py")
		if err != nil { // the kernel names files under another root as we see them
			f, err = procfs.OpenFile(folder + "version.py")
		}
		if err != nil {
			continue
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if found := versionLine.FindSubmatch(text); err == nil && found != nil {
			return string(found[1])
		}
	}
	return ""
}

// Of the releases 2.0 to 2.lastKnown, the layout of what the allocator holds is known. From
// 2.firstTried on, all of this package was compared with what PyTorch itself recorded.
const firstTried, lastKnown = 6, 15

// Untried returns a sentence on how far a release of PyTorch is known, where it is not
// one that was tried.
func Untried(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	switch {
	case major == "2" && err == nil && minor >= firstTried && minor <= lastKnown:
		return ""
	case major == "2" && err == nil && minor <= lastKnown:
		return fmt.Sprintf("recording from outside was compared with PyTorch's own recording for other releases (2.6 to 2.15) than %s", version)
	case version == "":
		version = "this release of PyTorch (its version.py was not found)"
	default:
		version = "PyTorch " + version
	}
	return fmt.Sprintf("%s is none of the releases whose allocator is known (2.0 to 2.%d): what contradicts itself is left out, but check the figures against torch.cuda.memory_stats()", version, lastKnown)
}
