package clickhousetest

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/port"
)

// EnvURL names a server: http://user:password@host:8123, of a user that may
// create databases and row policies.
const EnvURL = "WEIR_TEST_CLICKHOUSE_URL"

// Version of chdb-core, the engine without its libraries for data frames.
const Version = "26.9.0"

//go:embed front.py
var front []byte

// URL makes a new database for the test and returns its address. It is
// dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	s, err := server(t)
	if err != nil {
		t.Fatalf("testenv: no ClickHouse: %v", err)
	}
	backend.Announce("ClickHouse", s.where)
	name, err := s.create(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() {
		if _, err := s.query(context.Background(), "DROP DATABASE IF EXISTS "+name+" SYNC"); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return s.address + "/" + name
}

// A served ClickHouse.
type served struct {
	address string // without a database
	where   string
	chdb    *Chdb // nil: it is another
}

// server returns the one of this process.
func server(t testing.TB) (served, error) {
	t.Helper()
	if given := os.Getenv(EnvURL); given != "" {
		return served{address: strings.TrimSuffix(given, "/"), where: "given by " + EnvURL}, nil
	}
	if backend.Chosen() == "containers" {
		return inContainer(t)
	}
	return local()
}

// local starts chdb once.
var local = sync.OnceValues(func() (served, error) {
	folder, err := testenv.Scratch("weir-test-chdb-")
	if err != nil {
		return served{}, err
	}
	c, err := Start(context.Background(), folder)
	if err != nil {
		return served{}, err
	}
	return served{address: c.URL, where: "chdb-core " + Version + " behind an HTTP front", chdb: c}, nil
})

// A Chdb is ClickHouse in a process of its own. It ends with this process, by its
// stdin, which the kernel closes; so it must not be collected before.
type Chdb struct {
	URL   string // without a database
	Pid   int
	shell *exec.Cmd
	stdin io.Closer
}

// Start starts chdb with its data in a folder, which is removed at the end, however
// this process ends.
func Start(ctx context.Context, folder string) (*Chdb, error) {
	python, err := install(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "front.py"), front, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", `"$1" "$2/front.py" "$2"; rm -rf "$2"`, "weir-test-chdb", python, folder)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &Chdb{shell: cmd}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var at int
	if _, err := fmt.Fscan(out, &at, &c.Pid); err != nil {
		return nil, fmt.Errorf("chdb did not start: %w: %s", errors.Join(err, cmd.Wait()), complaints.Bytes())
	}
	c.URL = fmt.Sprintf("http://127.0.0.1:%d", at)
	return c, nil
}

// Stop ends it.
func (c *Chdb) Stop() error { return errors.Join(c.stdin.Close(), c.shell.Wait()) }

// Create makes a database and returns its address.
func (c *Chdb) Create(ctx context.Context) (url string, err error) {
	name, err := served{address: c.URL, chdb: c}.create(ctx)
	return c.URL + "/" + name, err
}

const whatToInstall = "install Python 3.9 or later with venv (Debian and Ubuntu: apt install python3 python3-venv), or give the address of a server by " + EnvURL

// install makes an environment of Python with chdb in the cache, unless it is
// there, and returns its interpreter.
func install(ctx context.Context) (python string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	place := filepath.Join(cache, "weir", "chdb-"+Version)
	python = filepath.Join(place, "bin", "python3")
	whole := filepath.Join(place, "whole") // the last file to be written
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return "", err
	}
	turn, err := filelock.Take(place + ".lock")
	if err != nil {
		return "", err
	}
	defer turn.Close()
	if _, err := os.Stat(whole); err == nil {
		return python, nil
	}
	for _, command := range [][]string{
		{"python3", "-m", "venv", "--clear", place},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "chdb-core==" + Version},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot install chdb: %s: %w: %s: %s", strings.Join(command, " "), err, bytes.TrimSpace(out), whatToInstall)
		}
	}
	return python, os.WriteFile(whole, nil, 0o600)
}

// image of ClickHouse's containers.
func image() string {
	if given := os.Getenv("WEIR_TEST_CLICKHOUSE_IMAGE"); given != "" {
		return given
	}
	return "clickhouse/clickhouse-server:26.3"
}

func inContainer(t testing.TB) (served, error) {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		return served{}, err
	}
	s := served{address: fmt.Sprintf("http://weir:weir@127.0.0.1:%d", free), where: "container of " + image()}
	variables := map[string]string{"CLICKHOUSE_USER": "weir", "CLICKHOUSE_PASSWORD": "weir", "CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT": "1"}
	c, err := backend.RunContainer(image(), 8123, free, variables, func(ctx context.Context) error {
		_, err := s.query(ctx, "SELECT 1")
		return err
	})
	if err != nil {
		return served{}, err
	}
	c.RemoveAtEnd(t)
	return s, nil
}

// create makes a database. Those of chdb have names that it knows.
func (s served) create(ctx context.Context) (name string, err error) {
	name = "weir_test_" + strings.ToLower(rand.Text()[:12])
	if s.chdb != nil {
		if name, err = s.query(ctx, "DATABASE"); err != nil {
			return "", err
		}
	}
	_, err = s.query(ctx, "CREATE DATABASE "+name)
	return name, err
}

func (s served) query(ctx context.Context, text string) (answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/?"+url.Values{"query": {text}}.Encode(), http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%q: %s: %s", text, response.Status, bytes.TrimSpace(body))
	}
	return string(body), err
}
