// Package nvml reads, with the library of NVIDIA's driver, what the driver counts: how
// much memory of each device is used, and by which processes. [Source] is the entry point.
//
// This program is static and cannot load a library. The library is therefore loaded by a
// program of a few KiB (c/reader.c, committed as built by build.sh), which is part of
// this one, runs from memory and answers over pipes: a call of the driver that hangs is
// ended with it, and one that crashes does not matter. A question costs a tenth of a
// millisecond and less for each device, where nvidia-smi takes some tenths of a second.
package nvml
