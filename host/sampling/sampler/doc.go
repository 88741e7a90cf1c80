// Package sampler takes samples of the processes of a machine: what each holds on the
// host, by /proc, and on devices, by a [sample.DeviceSource] and by the recorders of
// PyTorch processes.
//
// It looks cheaply at every process each time, and closer only now and then. A source
// that is slow or hangs delays no sample: what it last reported is used as long as it is
// recent.
package sampler
