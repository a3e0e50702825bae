package chdb

import (
	"bytes"
	"context"
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

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/filelock"
)

// Version of chdb-core, the engine without its libraries for data frames.
const Version = "26.9.0"

//go:embed front.py
var front []byte

// A Server is chdb in a process of its own. It ends with this process, by its
// stdin, which the kernel closes; so it must not be collected before.
type Server struct {
	URL   string // without a database
	Pid   int
	shell *exec.Cmd
	stdin io.Closer
}

// Start starts chdb with its data in a folder, which is removed at the end, however
// this process ends.
func Start(ctx context.Context, folder string) (*Server, error) {
	python, err := install(ctx)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(folder, "front.py"), string(front), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", `"$1" "$2/front.py" "$2"; rm -rf "$2"`, "weir-test-chdb", python, folder)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &Server{shell: cmd}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var at int
	if _, err := fmt.Fscan(out, &at, &s.Pid); err != nil {
		return nil, fmt.Errorf("chdb did not start: %w: %s", errors.Join(err, cmd.Wait()), complaints.Bytes())
	}
	s.URL = fmt.Sprintf("http://127.0.0.1:%d", at)
	return s, nil
}

// Stop ends it.
func (s *Server) Stop() error { return errors.Join(s.stdin.Close(), s.shell.Wait()) }

// Create makes a database and returns its name, which is one of those that have the row policy.
func (s *Server) Create(ctx context.Context) (name string, err error) {
	if name, err = Query(ctx, s.URL, "DATABASE"); err != nil {
		return "", err
	}
	_, err = Query(ctx, s.URL, "CREATE DATABASE "+name)
	return name, err
}

// Query sends a statement to any ClickHouse.
func Query(ctx context.Context, address, statement string) (answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/?"+url.Values{"query": {statement}}.Encode(), http.NoBody)
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
		err = fmt.Errorf("%q: %s: %s", statement, response.Status, bytes.TrimSpace(body))
	}
	return string(body), err
}

const whatToInstall = "install Python 3.9 or later with venv (Debian and Ubuntu: apt install python3 python3-venv)"

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
	return python, atomicfile.Write(whole, "", 0o600)
}
