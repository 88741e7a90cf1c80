package sample

import (
	"context"
	"fmt"

	"strandline/units"
)

// A DeviceSource reads how much memory of devices is used, and by whom: nvidia-smi, or
// the library of the driver.
type DeviceSource interface {
	// Name is what to call it in a sentence, such as "nvidia-smi".
	Name() string
	// Read returns the devices as they are now. It returns when the context ends, also
	// where the driver hangs. Note that one device that cannot be read is a [Device] with
	// a Note, and not an error. It is not called concurrently.
	Read(ctx context.Context) ([]Device, error)
	Close() error
}

// A Device is a GPU, or a part of one that is used like one (MIG). What the driver does
// not report is nil: it writes N/A where a device shares the memory of the host.
type Device struct {
	Index int    `json:"device"` // as nvidia-smi counts, which need not be as CUDA does
	UUID  string `json:"uuid"`
	Name  string `json:"name,omitempty"`
	Used  *int64 `json:"used_bytes"`
	Free  *int64 `json:"free_bytes"`
	Total *int64 `json:"total_bytes"`
	// Reserved is what the driver keeps for itself, in addition to Used and Free.
	Reserved *int64 `json:"reserved_bytes"`
	// Parent is the index of the device that this one is a part of (MIG). Of the parent
	// itself, Divided states that it has parts, which have the processes.
	Parent  *int `json:"parent,omitempty"`
	Divided bool `json:"divided,omitempty"`
	// Unified states that the device has no memory of its own, and uses that of the host.
	Unified   bool      `json:"unified,omitempty"`
	Processes []Holding `json:"processes"`
	// Unowned is what the driver counts for processes that have ended, and
	// Remainder what it counts for none: its own, and that of processes it does not
	// list. A negative one is memory that several processes are counted for. [Device.Account]
	// sets both.
	Unowned   *int64 `json:"unowned_bytes"`
	Remainder *int64 `json:"remainder_bytes"`
	Note      string `json:"note,omitempty"` // why something is not known
}

// A Holding is what a process holds of a device, by the driver's count. Its PID is that
// which the driver knows, of the host also where we are in a container.
//
// PID 0 is one or several processes of which the driver reveals nothing, not even how
// many they are; without Used it states that others may use the device.
type Holding struct {
	PID  int    `json:"pid"`
	Used *int64 `json:"used_bytes"`
	// Owner is "live", "gone" of a process that has ended, or "not visible" of one
	// of another pid namespace. A source leaves it empty.
	Owner string `json:"owner,omitempty"`
}

// Label is what to call the device: "device 0", or "device 0 part 2" of a part.
func (d *Device) Label() string {
	if d.Parent == nil {
		return fmt.Sprintf("device %d", d.Index)
	}
	return fmt.Sprintf("device %d part %d", *d.Parent, d.Index%firstPart)
}

// firstPart is the index of the first part of device 0.
const firstPart = 100

// PartIndex is the index of part k (MIG instance) of a device: those of device 0 count
// from 100, those of device 1 from 200.
func PartIndex(device, k int) int { return firstPart*(device+1) + k }

// The owners of a [Holding].
const (
	Live       = "live"
	Gone       = "gone"
	NotVisible = "not visible"
)

// Account divides what is used among the owners of the holdings. Unowned and Remainder
// are nil where a part of the sum is not known.
func (d *Device) Account() {
	var sum, gone int64
	known, counted := d.Used != nil, true
	for _, h := range d.Processes {
		if h.Used == nil {
			known = false
			counted = counted && h.Owner != Gone && h.PID != 0
			continue
		}
		sum = units.Sum(sum, *h.Used)
		if h.Owner == Gone {
			gone = units.Sum(gone, *h.Used)
		}
	}
	d.Unowned, d.Remainder = nil, nil
	if d.Divided {
		return
	}
	if counted {
		d.Unowned = &gone
	}
	if known {
		rest := units.Sum(*d.Used, -sum)
		d.Remainder = &rest
	}
}
