package sampler

import (
	"context"
	"fmt"
	"strconv"

	"strandline/host/gpu/nvsmi"
	"strandline/host/sampling/sample"
)

// readSMI runs nvidia-smi, which takes some tenths of a second each time.
func readSMI(ctx context.Context) ([]sample.Device, error) {
	r, err := nvsmi.Read(ctx)
	if err != nil {
		return nil, err
	}
	return devicesFromSMI(r), nil
}

func devicesFromSMI(r *nvsmi.Reading) []sample.Device {
	out := []sample.Device{}
	for i, d := range r.Devices {
		index, err := strconv.Atoi(d.Index)
		if err != nil {
			index = i
		}
		n := sample.Device{Index: index, UUID: d.UUID, Used: d.Used, Total: d.Total, Processes: []sample.Holding{}}
		switch {
		case d.Used != nil && d.Total != nil:
			free := max(*d.Total-*d.Used, 0)
			n.Free = &free
		case d.Total == nil:
			n.Unified = true
			n.Note = "the driver does not report the memory of this device: it shares that of the host, or is cut into parts"
		default:
			n.Note = fmt.Sprintf("the driver does not report how much of device %d is used", index)
		}
		for _, u := range r.Processes {
			if u.UUID == d.UUID {
				n.Processes = append(n.Processes, sample.Holding{PID: u.PID, Used: u.Used})
			}
		}
		out = append(out, n)
	}
	return out
}
