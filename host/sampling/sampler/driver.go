package sampler

import (
	"context"
	"errors"
	"time"

	"strandline/host/gpu/nvml"
	"strandline/host/gpu/nvsmi"
	"strandline/host/sampling/sample"
)

// NVIDIA is the [sample.DeviceSource] of NVIDIA's devices: it asks the driver's library,
// and where that is not there, nvidia-smi.
type NVIDIA struct {
	library *nvml.Source
	again   time.Time // when to look for the library again
}

// NewNVIDIA is one that has not asked yet.
func NewNVIDIA() *NVIDIA { return &NVIDIA{library: nvml.New(nvml.Options{})} }

// Name is that of the driver.
func (*NVIDIA) Name() string { return "NVIDIA's driver" }

// Read asks for the devices. A driver that is there and fails is not asked by other
// means: they fail in the same way, or hang.
func (n *NVIDIA) Read(ctx context.Context) ([]sample.Device, error) {
	const pause = time.Minute // the driver can be installed while we run
	if !time.Now().Before(n.again) {
		devices, err := n.library.Read(ctx)
		if !errors.Is(err, nvml.ErrNoLibrary) {
			return devices, err
		}
		n.again = time.Now().Add(pause)
	}
	devices, err := readSMI(ctx)
	if errors.Is(err, nvsmi.ErrNone) {
		return nil, errors.New("no NVIDIA driver found: neither libnvidia-ml.so.1 nor nvidia-smi")
	}
	return devices, err
}

// Close ends what was started.
func (n *NVIDIA) Close() error { return n.library.Close() }
