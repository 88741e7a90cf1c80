package main

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"

	"strandline/internal/licenses"
)

// sbom lists the parts of the programs as an SPDX document: those whose notices
// `strandline version --licenses` prints.
func (r *release) sbom() ([]byte, error) {
	self := part("strandline", r.version, "Apache-2.0")
	doc := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "strandline-" + r.version,
		DocumentNamespace: "https://spdx.org/spdxdocs/strandline-" + r.version + "-" + r.revision,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.time.Format(time.RFC3339),
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "strandline-release"}},
		},
		Packages:      []*spdx.Package{self},
		Relationships: []*spdx.Relationship{relationship("DOCUMENT", "DESCRIBES", self)},
	}
	for _, n := range licenses.Notices() {
		license, err := identifier(n.Text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		name, version := n.Name, n.Version
		if version == "standard-library" {
			name, version = "stdlib", strings.TrimPrefix(runtime.Version(), "go")
		}
		p := part(name, version, license)
		kind, at := "golang", version
		if !strings.HasPrefix(version, "v") && name != "stdlib" {
			kind = "npm"
		}
		p.PackageExternalReferences = []*spdx.PackageExternalReference{{
			Category: spdx.CategoryPackageManager, RefType: spdx.PackageManagerPURL, Locator: "pkg:" + kind + "/" + name + "@" + at,
		}}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relationship(self.PackageSPDXIdentifier, "DEPENDS_ON", p))
	}
	var out bytes.Buffer
	err := json.Write(&doc, &out, json.Indent(" "))
	return out.Bytes(), err
}

// part is a package of the list.
func part(name, version, license string) *spdx.Package {
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, name)
	return &spdx.Package{
		PackageName: name, PackageVersion: version, PackageSPDXIdentifier: spdx.ElementID("Package-" + id), PackageDownloadLocation: "NOASSERTION",
		PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: license, PackageCopyrightText: "NOASSERTION",
	}
}

func relationship(from spdx.ElementID, kind string, to *spdx.Package) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: spdx.DocElementID{ElementRefID: from}, Relationship: kind, RefB: spdx.DocElementID{ElementRefID: to.PackageSPDXIdentifier},
	}
}

// identifier is the SPDX expression of the licenses in a notice, by a sentence that only they
// have.
func identifier(notice string) (string, error) {
	text := strings.Join(strings.Fields(notice), " ")
	var out []string
	for _, l := range []struct{ id, sentence, without string }{
		{"Apache-2.0", "Apache License Version 2.0", ""},
		{"BSD-2-Clause", "Redistribution and use in source and binary forms", "names of its contributors"},
		{"BSD-3-Clause", "names of its contributors", ""},
		{"MIT", "Permission is hereby granted, free of charge", ""},
		{"MPL-2.0", "Mozilla Public License", ""},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software", ""},
	} {
		if strings.Contains(text, l.sentence) && (l.without == "" || !strings.Contains(text, l.without)) {
			out = append(out, l.id)
		}
	}
	if len(out) == 0 {
		return "", fmt.Errorf("its license is none that is known: %.80q", text)
	}
	slices.Sort(out)
	return strings.Join(out, " AND "), nil
}
