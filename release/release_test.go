package main

import (
	"path/filepath"
	"runtime"
	"testing"
)

// TestSize builds the program, which fails where it is too large.
func TestSize(t *testing.T) {
	program, err := target{runtime.GOOS, runtime.GOARCH}.build("..", filepath.Join(t.TempDir(), "strandline"), "-buildvcs=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(program))
}

func TestPythonVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3":                                    "1.2.3",
		"1.2.3-rc.1":                               "1.2.3rc1",
		"1.2.3-beta2":                              "1.2.3b2",
		"0.0.0-20261128101639-85d9fd3de3d3":        "0.0.0.dev20261128101639",
		"1.2.4-0.20261128101639-85d9fd3de3d3":      "1.2.4.dev20261128101639",
		"1.2.3-rc.1.0.20261128101639-85d9fd3de3d3": "1.2.3.dev20261128101639",
		"1.2":            "",
		"1.2.3-snapshot": "",
	} {
		got, err := pythonVersion(version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", version, got, err, want)
		}
	}
}

func TestIdentifier(t *testing.T) {
	for notice, want := range map[string]string{
		"Apache License\n  Version 2.0, January 2004":                                            "Apache-2.0",
		"Redistribution and use in source and binary forms, with or without":                     "BSD-2-Clause",
		"Redistribution and use in source and\nbinary forms … the names of its contributors may": "BSD-3-Clause",
		"Permission is hereby granted, free of charge … Apache License Version 2.0":              "Apache-2.0 AND MIT",
		"All rights reserved.": "",
	} {
		got, err := identifier(notice)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", notice, got, err, want)
		}
	}
}
