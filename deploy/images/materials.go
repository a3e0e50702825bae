package images

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// materials is the bill of materials of a program, as CycloneDX: every
// module in the binary's build information, Go itself, and the source
// of the certificates.
func materials(p Program, binary []byte, roots *debug.Module, build Build) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("cannot read what %s was compiled of: %w", p.Name(), err)
	}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range append(info.Deps, roots) {
		if module.Replace != nil && module.Replace.Version != "" {
			module = module.Replace
		}
		components = append(components, library(module.Path, released(module.Version, build)))
	}
	bom := cyclonedx.NewBOM()
	about := library(info.Path, build.Version)
	about.Type, about.Name, about.Description = cyclonedx.ComponentTypeApplication, "weir/"+p.Name(), p.Description
	bom.Metadata = &cyclonedx.Metadata{Timestamp: build.created(), Component: &about}
	bom.Components = &components
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// released returns a module's version. Those of this repository
// have the build's.
func released(version string, build Build) string {
	if version == "(devel)" || version == "v0.0.0" {
		return build.Version
	}
	return cmp.Or(version, build.Version)
}

func library(path, version string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}
