package images

import (
	"archive/zip"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User runs the programs. Distroless images commonly use this number.
const user = "65532:65532"

// rootsModule is where the certificates come from.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// A foundation is the common base of every image.
type foundation struct {
	layer v1.Layer
	roots *debug.Module
}

func lay() (f foundation, err error) {
	goroot, err := command("go", "env", "GOROOT")
	if err != nil {
		return f, err
	}
	version, err := command("go", "list", "-m", "-f", "{{.Version}}", rootsModule)
	if err != nil {
		return f, err
	}
	files, err := base(filepath.Join(goroot, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return f, err
	}
	f.roots = &debug.Module{Path: rootsModule, Version: version}
	f.layer, err = layer(files)
	return f, err
}

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func base(zoneinfo string) ([]file, error) {
	files := []file{
		{name: "etc/passwd", content: []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", content: []byte("nonroot:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", content: authorities()},
		{name: "tmp/", mode: 0o1777},
	}
	zones, err := timeZones(zoneinfo)
	return append(files, zones...), err
}

// authorities are those that Mozilla trusts without conditions, which a
// file can't express.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// timeZones are those of the Go that compiles the programs.
func timeZones(zoneinfo string) (files []file, err error) {
	archive, err := zip.OpenReader(zoneinfo)
	if err != nil {
		return nil, fmt.Errorf("cannot read the time zones: %w", err)
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, "/") {
			continue
		}
		content, err := readZipped(entry)
		if err != nil {
			return nil, fmt.Errorf("cannot read the time zone %q: %w", entry.Name, err)
		}
		files = append(files, file{name: path.Join("usr/share/zoneinfo", entry.Name), content: content})
	}
	return files, nil
}

func readZipped(entry *zip.File) ([]byte, error) {
	reader, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}
