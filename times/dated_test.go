package times

import "testing"

func TestDated(t *testing.T) {
	const (
		y2026 = 1772325000 // 2026-03-01 00:30:00 UTC
		y2000 = 951870600  // the same in 2000
	)
	for line, want := range map[string]float64{
		"[titan] 2026-03-01 00:30:00,250 - root":       y2026 + 0.25,
		"2026-03-01T00:30:00.5Z x":                     y2026 + 0.5,
		"  time      : 2026-03-01_00:30:00":            y2026,
		"03/01/2026 00:30:00 - WARNING":                y2026,
		"01.03.2026 00:30:00 INFO":                     y2026,
		"[W301 00:30:00.500000000 ProcessGroup":        y2000 + 0.5,
		"E0301 00:30:00.5 77 torch/distributed":        y2000 + 0.5,
		"INFO 03-01 00:30:00 [gpu_worker.py:276]":      y2000,
		"Mar  1 00:30:00 n7 kernel: x":                 y2000,
		"  0%|  | 10/5000 [04:23<36:31:55, 26.36s/it]": 0,
		"10:20:30 no date":                             0,
		"2026-13-41 00:30:00":                          0,
	} {
		got, dated, ok := Dated(line)
		if ok != (want > 0) || ok && (got != want || dated != (want >= y2026)) {
			t.Errorf("%q: %f %v %v, want %f", line, got, dated, ok, want)
		}
	}
}
