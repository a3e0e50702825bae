package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/grouping"
)

//go:embed testdata/programs
var programs embed.FS

// matrix is the errors of a platform's program.
type matrix struct {
	platform string
	missing  string // why there are none
	faults   []fault
}

// fault is a bug as it is first seen, and in variants.
type fault struct {
	bug   string
	base  grouping.Error
	again []occurrence
}

type occurrence struct {
	dimension
	grouping.Error
}

// matrices runs all platforms' programs.
func matrices(platforms []platform) ([]matrix, error) {
	all, failures := make([]matrix, len(platforms)), make([]error, len(platforms))
	var running sync.WaitGroup
	for i, p := range platforms {
		running.Go(func() {
			if all[i], failures[i] = p.matrix(); failures[i] != nil {
				failures[i] = fmt.Errorf("%s: %w", p.name, failures[i])
			}
		})
	}
	running.Wait()
	return all, errors.Join(failures...)
}

func (p platform) matrix() (m matrix, err error) {
	tools := p.tools()
	if len(tools) == 0 {
		return matrix{platform: p.name, missing: "not installed"}, nil
	}
	m.platform = p.name + " " + tools[0].version
	root, err := os.MkdirTemp("", "weir-grouping-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(root)
	w := &workshop{platform: p, root: root}
	base := setup{folder: "srv/shop", file: p.file, callers: "0", id: "4711", name: "alice", mode: "caught"}
	for _, base.flags = range append(slices.Clip(p.flags), "") {
		if err = w.make(tools[0], base); err == nil {
			break
		}
	}
	if err == nil {
		err = w.first(&m, base)
	}
	for _, d := range slices.Concat(everywhere, p.variants) {
		changed := base
		d.change(&changed)
		err = cmp.Or(err, w.again(&m, tools[0], changed, d))
	}
	for _, t := range tools[1:] {
		err = cmp.Or(err, w.again(&m, t, base, dimension{column: "version", name: t.version}))
	}
	return m, err
}

// workshop builds and runs a platform's program.
type workshop struct {
	platform
	root    string
	command []string // that runs what was built last
	last    string   // what that was
}

// first adds the faults to the matrix as they are first seen.
func (w *workshop) first(m *matrix, base setup) error {
	names, err := w.execute(w.command, nil)
	for _, bug := range strings.Fields(names) {
		m.faults = append(m.faults, fault{bug: bug})
	}
	slices.SortFunc(m.faults, func(a, b fault) int { return strings.Compare(a.bug, b.bug) })
	return cmp.Or(err, w.each(m, base, func(f *fault, e grouping.Error) { f.base = e }))
}

// again adds them as they are seen in a variant. A compiler's version
// or flag that does not build is no variant.
func (w *workshop) again(m *matrix, t tool, s setup, d dimension) error {
	if w.make(t, s) != nil && (d.column == "build" || d.column == "version") {
		m.missing += fmt.Sprintf("%s (does not build) ", d.name)
		return nil
	}
	return w.each(m, s, func(f *fault, e grouping.Error) { f.again = append(f.again, occurrence{d, e}) })
}

func (w *workshop) each(m *matrix, s setup, add func(f *fault, e grouping.Error)) error {
	for i := range m.faults {
		f := &m.faults[i]
		printed, err := w.execute(append(w.command, f.bug, s.callers, s.id, s.name, s.mode), s.env)
		e := parse(printed, s.joined)
		if failed := (*exec.ExitError)(nil); e.Type == "" && err == nil || err != nil && !errors.As(err, &failed) {
			return fmt.Errorf("%s printed no error in %+v: %q %w", f.bug, s, first(printed), err)
		}
		add(f, e)
	}
	return nil
}

// make writes and builds the program, unless it was the last.
func (w *workshop) make(t tool, s setup) error {
	key := fmt.Sprint(t, s.folder, s.file, s.blank, s.build, s.flags)
	if key == w.last {
		return nil
	}
	w.last = ""
	source, err := w.write(s)
	if err != nil {
		return err
	}
	values := map[string]string{"{tool}": t.path, "{bin}": filepath.Dir(t.path), "{source}": source, "{out}": filepath.Join(filepath.Dir(source), "shop")}
	if w.command = fill(w.run, "", values); w.build != "" {
		_, err = w.execute(fill(w.build, s.flags, values), s.env)
	}
	if w.unbuilt != "" && errors.Is(err, fs.ErrNotExist) {
		w.command, err = fill(w.unbuilt, "", values), nil
	}
	if err == nil {
		w.last = key
	}
	return err
}

// write writes the program's source, and returns its path.
func (w *workshop) write(s setup) (path string, err error) {
	text, err := fs.ReadFile(programs, "testdata/programs/"+w.program)
	if err != nil {
		return "", err
	}
	source := string(text)
	if w.transform != nil {
		source = w.transform(source, s.build)
	}
	path = filepath.Join(w.root, s.folder, cmp.Or(s.file, filepath.Base(w.program)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprint(file, strings.Repeat("\n", s.blank), source)
	return path, cmp.Or(err, file.Close())
}

const longest = 5 * time.Minute // of a build or a run, also where all of the machine is busy

func (w *workshop) execute(command, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = slices.Concat(os.Environ(), w.env, env)
	printed, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, first(string(printed)))
	}
	return string(printed), err
}

// parse reads an error as programs print it: type and message in
// front, where the language's own loggers have them.
func parse(printed string, joined bool) (e grouping.Error) {
	lines := strings.Split(strings.Trim(printed, "\n"), "\n")
	for len(lines) > 0 {
		if typ, ok := strings.CutPrefix(lines[0], "type: "); ok {
			e.Type = typ
		} else if message, ok := strings.CutPrefix(lines[0], "message: "); ok {
			e.Message = message
		} else {
			break
		}
		lines = lines[1:]
	}
	if joined {
		lines = []string{strings.Join(lines, "\n")}
	}
	e.StackTrace = lines
	return e
}
