package images

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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

// Largest is the largest size of an image in a registry, in bytes.
const Largest = 40_000_000

// A Build describes a build of images.
type Build struct {
	Repository   string // prefix of the images' names, such as weir
	Version      string // the images' tag, and the programs' version
	Revision     string // the commit
	Created      time.Time
	Architecture string // of the processor, in Go's terms
}

func (b Build) created() string { return b.Created.UTC().Format(time.RFC3339) }

// A Made image is in a file for `docker load` and registries' tools.
type Made struct {
	Tag, Digest, File string
	Bytes             int64 // in a registry
}

// Compile builds programs for images into dir, as one go build. The
// linker omits what only a debugger needs, and sets the version,
// independent of the working tree's state.
func Compile(ctx context.Context, root, dir string, programs []Program, build Build) error {
	args := []string{
		"build", "-trimpath", "-buildvcs=false", "-o", dir + string(filepath.Separator),
		"-ldflags", "-s -w -X github.com/weirlog/weir/shared/process.version=" + build.Version,
	}
	for _, p := range programs {
		args = append(args, "./"+p.Main)
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = root, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+build.Architecture)
	if err := command.Run(); err != nil {
		return fmt.Errorf("cannot compile the programs: %w", err)
	}
	return nil
}

// Pack makes images of the programs in dir, and writes them and their
// bills of materials to out.
func Pack(dir, out string, programs []Program, build Build) (made []Made, err error) {
	below, err := lay()
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		one, err := pack(p, dir, out, below, build)
		if err != nil {
			return nil, fmt.Errorf("cannot make the image of %s: %w", p.Name(), err)
		}
		made = append(made, one)
	}
	return made, nil
}

func pack(p Program, dir, out string, below foundation, build Build) (made Made, err error) {
	binary, err := os.ReadFile(filepath.Join(dir, p.Name()))
	if err != nil {
		return made, err
	}
	bill, err := materials(p, binary, below.roots, build)
	if err != nil {
		return made, err
	}
	packed, err := image(p, binary, bill, below.layer, build)
	if err != nil {
		return made, err
	}
	if err := os.WriteFile(filepath.Join(out, p.Name()+".cdx.json"), bill, 0o644); err != nil {
		return made, err
	}
	return save(p, packed, out, build)
}

// save writes an image that is small enough.
func save(p Program, packed v1.Image, out string, build Build) (made Made, err error) {
	tag, err := name.NewTag(fmt.Sprintf("%s/%s:%s", build.Repository, p.Name(), build.Version))
	if err != nil {
		return made, err
	}
	digest, err := packed.Digest()
	if err != nil {
		return made, err
	}
	made = Made{Tag: tag.String(), Digest: digest.String(), File: filepath.Join(out, p.Name()+".tar")}
	if made.Bytes, err = bytesOf(packed); err != nil {
		return made, err
	}
	if made.Bytes > Largest {
		return made, fmt.Errorf("%d bytes: more than %d", made.Bytes, Largest)
	}
	return made, tarball.WriteToFile(made.File, tag, packed)
}

func bytesOf(packed v1.Image) (sum int64, err error) {
	layers, err := packed.Layers()
	for _, l := range layers {
		size, failed := l.Size()
		sum, err = sum+size, errors.Join(err, failed)
	}
	return sum, err
}

// How often an engine checks whether a service can serve, and how long
// that may take to start.
const (
	healthInterval = 10 * time.Second
	healthTimeout  = 6 * time.Second
	healthStart    = time.Minute
	healthRetries  = 3
)

const source = "https://github.com/weirlog/weir"

func image(p Program, binary, materials []byte, base v1.Layer, build Build) (v1.Image, error) {
	own, err := layer([]file{{name: p.Name(), content: binary, mode: 0o555}, {name: "sbom.cdx.json", content: materials}})
	if err != nil {
		return nil, err
	}
	made, err := mutate.AppendLayers(empty.Image, base, own)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(made, config(made, p, build))
}

func config(made v1.Image, p Program, build Build) *v1.ConfigFile {
	file, _ := made.ConfigFile() // of an image made in memory
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = build.Architecture, "linux", v1.Time{Time: build.Created}
	file.Config = v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{path.Join("/", p.Name())}, Labels: labels(p, build)}
	if p.Serves {
		file.Config.Env = []string{"WEIR_LISTEN=:8443"}
		file.Config.ExposedPorts = map[string]struct{}{"8443/tcp": {}}
		file.Config.Healthcheck = &v1.HealthConfig{
			Test:     []string{"CMD", path.Join("/", p.Name()), "ready"},
			Interval: healthInterval, Timeout: healthTimeout, StartPeriod: healthStart, Retries: healthRetries,
		}
	}
	return file
}

func labels(p Program, build Build) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "weir/" + p.Name(),
		"org.opencontainers.image.description": p.Description,
		"org.opencontainers.image.version":     build.Version,
		"org.opencontainers.image.revision":    build.Revision,
		"org.opencontainers.image.created":     build.created(),
		"org.opencontainers.image.source":      source,
	}
}

// A file of an image. Its name begins without a slash; a folder's
// ends with one.
type file struct {
	name    string
	content []byte
	mode    int64 // 0: readable for everybody
}

// layer packs files with their folders. Only names, contents and modes
// count: the owner is root, the time zero.
func layer(files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, f := range withFolders(files) {
		if err := write(writer, f); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressedCaching)
}

func write(writer *tar.Writer, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: cmp.Or(f.mode, 0o444)}
	if strings.HasSuffix(f.name, "/") {
		header.Typeflag, header.Mode = tar.TypeDir, cmp.Or(f.mode, 0o755)
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(f.content)
	return err
}

// withFolders adds the folders, each before its contents.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		for folder := path.Dir(strings.TrimSuffix(f.name, "/")); folder != "."; folder = path.Dir(folder) {
			if _, given := all[folder+"/"]; !given {
				all[folder+"/"] = file{name: folder + "/"}
			}
		}
		all[f.name] = f
	}
	return slices.SortedFunc(maps.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

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

// A Program is the content of an image.
type Program struct {
	Main        string // its main package, relative to the root of the repository
	Description string
	Serves      bool // it listens until it is stopped
}

// Programs are all programs.
var Programs = []Program{
	{"ingest/cmd/ingest", "The front door of Weir: takes log entries in, keeps them, finds them again.", true},
	{"ledger/cmd/ledger", "The quota ledger of Weir: charges what was accepted, answers for balances.", true},
	{"grouping/cmd/grouping", "The error grouping of Weir: which errors in the logs are the same.", true},
	{"tenants/cmd/tenants", "Organizations, projects, API keys and members of Weir, and its console.", true},
	{"deploy/cmd/gateway", "Weir's whole HTTP API on one address.", true},
	{"deploy/cmd/weir", "Weir's tools: creates topics, shows parked records, runs everything in one process.", false},
	{"ledger/cmd/ledger-verify", "Checks every balance of Weir's ledger against its log.", false},
	{"ledger/cmd/ledger-rebuild", "Rebuilds Weir's ledger from the log and its decisions, and compares the two.", false},
}

// Name returns the name of the program and its image.
func (p Program) Name() string { return path.Base(p.Main) }
