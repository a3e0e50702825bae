package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/weirlog/weir/shared/testenv"
)

var commit = Build{
	Repository: "weir", Version: "v1.4.0", Revision: "ca80d461", Created: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), Architecture: runtime.GOARCH,
}

const root = "../.."

// Each program has an image.
func TestEveryProgram(t *testing.T) {
	mains, err := filepath.Glob(root + "/*/cmd/*")
	testenv.Must(t, err)
	var want, have []string
	for _, main := range mains {
		want = append(want, strings.TrimPrefix(filepath.ToSlash(main), root+"/"))
	}
	for _, p := range Programs {
		have = append(have, p.Main)
	}
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("images of %q\nprograms are %q", have, want)
	}
}

// verifier is the smallest program with a database.
func verifier() []Program {
	return slices.DeleteFunc(slices.Clone(Programs), func(p Program) bool { return p.Name() != "ledger-verify" })
}

// compiled returns the folder of the programs compiled from a working tree.
func compiled(t *testing.T, tree string, build Build) string {
	t.Helper()
	dir := t.TempDir()
	testenv.Must(t, Compile(t.Context(), tree, dir, verifier(), build))
	return dir
}

// Both look at the programs of this working tree.
func TestCompiled(t *testing.T) {
	here := compiled(t, root, commit)
	t.Run("reproducible", func(t *testing.T) { reproducible(t, here) })
	t.Run("materials", func(t *testing.T) { listsMaterials(t, here) })
}

// The same commit, compiled and packed in two folders, gives the same
// digest and the same file; another version does not.
func reproducible(t *testing.T, here string) {
	t.Helper()
	elsewhere := t.TempDir()
	for _, folder := range []string{"shared", "ledger"} {
		testenv.Must(t, os.CopyFS(filepath.Join(elsewhere, folder), os.DirFS(filepath.Join(root, folder))))
	}
	testenv.Must(t, os.WriteFile(filepath.Join(elsewhere, "go.work"), []byte("go 1.26.0\nuse (\n./shared\n./ledger\n)\n"), 0o600))
	packed := func(dir string, build Build) (digest string, sum [sha256.Size]byte) {
		made, err := Pack(dir, t.TempDir(), verifier(), build)
		testenv.Must(t, err)
		content, err := os.ReadFile(made[0].File)
		testenv.Must(t, err)
		return made[0].Digest, sha256.Sum256(content)
	}
	digest, sum := packed(here, commit)
	if d, s := packed(compiled(t, elsewhere, commit), commit); d != digest || s != sum {
		t.Error("the same commit in another folder is another image")
	}
	next := commit
	next.Version = "v1.4.1"
	if d, s := packed(here, next); d == digest || s == sum {
		t.Error("another version is the same image")
	}
}

// The contents of an image, and how it runs. The program is this test.
func TestImage(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	own, err := os.Executable()
	testenv.Must(t, err)
	content, err := os.ReadFile(own)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "ingest"), content, 0o600))
	made, err := Pack(dir, out, Programs[:1], commit)
	testenv.Must(t, err)
	packed, err := tarball.ImageFromPath(made[0].File, nil)
	testenv.Must(t, err)
	config, err := packed.ConfigFile()
	testenv.Must(t, err)
	if c := config.Config; c.User != "65532:65532" || c.Entrypoint[0] != "/ingest" || c.Healthcheck.Test[2] != "ready" || c.Labels["org.opencontainers.image.revision"] != "ca80d461" ||
		c.Labels["org.opencontainers.image.version"] != "v1.4.0" || !config.Created.Equal(commit.Created) || made[0].Tag != "weir/ingest:v1.4.0" {
		t.Errorf("%s: %+v, %s", made[0].Tag, c, config.Created)
	}
	files := unpack(t, packed)
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "etc/passwd", "usr/share/zoneinfo/Pacific/Auckland", "tmp", "ingest", "sbom.cdx.json"} {
		if files[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for name, header := range files {
		if header.Uid != 0 || header.ModTime.Unix() != 0 || header.Mode&0o022 != 0 && name != "tmp" {
			t.Errorf("%s: of user %d, mode %o, of %s", name, header.Uid, header.Mode, header.ModTime)
		}
	}
}

// A program's bill lists all that it was compiled of, once, with a version.
func listsMaterials(t *testing.T, here string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(here, "ledger-verify"))
	testenv.Must(t, err)
	below, err := lay()
	testenv.Must(t, err)
	text, err := materials(verifier()[0], content, below.roots, commit)
	testenv.Must(t, err)
	var bill cyclonedx.BOM
	testenv.Must(t, json.Unmarshal(text, &bill))
	seen := map[string]string{}
	for _, c := range *bill.Components {
		if seen[c.Name] != "" || c.Version == "" || c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("component %q %q %q", c.Name, c.Version, c.PackageURL)
		}
		seen[c.Name] = c.Version
	}
	for module, want := range map[string]string{
		"std": strings.TrimPrefix(runtime.Version(), "go"), "github.com/weirlog/weir/shared": "v1.4.0", "github.com/jackc/pgx/v5": listed(t, "github.com/jackc/pgx/v5"),
		rootsModule: listed(t, rootsModule),
	} {
		if seen[module] != want {
			t.Errorf("%s is of %q instead of %q", module, seen[module], want)
		}
	}
	if about := bill.Metadata.Component; about.Name != "weir/ledger-verify" || about.Version != "v1.4.0" {
		t.Errorf("the bill is of %+v", about)
	}
}

func listed(t *testing.T, module string) string {
	t.Helper()
	version, err := command("go", "list", "-m", "-f", "{{.Version}}", module)
	testenv.Must(t, err)
	return version
}

// Clients of public servers find trusted authorities.
func TestAuthorities(t *testing.T) {
	if n := strings.Count(string(authorities()), "BEGIN CERTIFICATE"); n < 100 {
		t.Errorf("%d authorities", n)
	}
}

func unpack(t *testing.T, packed v1.Image) map[string]*tar.Header {
	t.Helper()
	reader := mutate.Extract(packed)
	defer reader.Close()
	files, archive := map[string]*tar.Header{}, tar.NewReader(reader)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		testenv.Must(t, err)
		files[strings.TrimSuffix(header.Name, "/")] = header
	}
}
