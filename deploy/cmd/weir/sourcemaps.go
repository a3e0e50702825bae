package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/shared/ui"
)

const sourcemapsHelp = `Source maps show and group errors of minified scripts as they were written:

  weir sourcemaps upload dist/ --release=1.4.0               those of scripts at https://any.host/…
  weir sourcemaps upload dist/ --release=1.4.0 --url-prefix=~/static
  weir sourcemaps                                            what is there
  weir sourcemaps delete --release=1.3.0

Upload them before the scripts are deployed: a map holds for the errors that come later.`

type sourcemapsCommand struct {
	List   sourcemapsList   `cmd:"" default:"withargs" help:"List the source maps of a project, the newest first."`
	Upload sourcemapsUpload `cmd:"" help:"Upload all source maps in a directory."`
	Delete sourcemapsDelete `cmd:"" help:"Delete source maps."`
}

// Help is called by kong.
func (sourcemapsCommand) Help() string { return sourcemapsHelp }

// openProject is open for what needs a project.
func (s *projectReader) openProject() (*client.Client, error) {
	api, found, err := s.open()
	if err != nil {
		return nil, err
	}
	if s.Project = cmp.Or(s.Project, found.Project); s.Project == "" {
		api.Close()
		return nil, missing("a project's id", "WEIR_PROJECT")
	}
	return api, nil
}

// found are the maps of the project, of one release unless that is empty.
func (s *projectReader) found(ctx context.Context, api *client.Client, release string, limit int) ([]json.RawMessage, error) {
	query := url.Values{}
	setAll(query, map[string]string{"release": release})
	return client.Collect(ctx, api, s.caller(), client.SourceMapsPath(s.Project), query, limit)
}

type sourcemapsList struct {
	Release string `help:"Only those of this release."`
	Limit   int    `help:"How many at most." default:"100"`
	JSON    bool   `name:"json" help:"Print them as the API has them, one on each line."`

	projectReader
}

// Run is called by kong.
func (l *sourcemapsList) Run(ctx context.Context) error {
	api, err := l.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return l.print(ctx, api, terminal.Of(os.Stdout))
}

func (l *sourcemapsList) print(ctx context.Context, api *client.Client, screen terminal.Screen) error {
	found, err := l.found(ctx, api, l.Release, l.Limit)
	if err != nil {
		return err
	}
	head := []string{"MAP", "RELEASE", "SCRIPT", "SIZE", "UPLOADED", "USED"}
	return screen.List(l.JSON, found, "There is no source map.", head, func(item json.RawMessage) ([]string, error) {
		var m client.SourceMap
		err := json.Unmarshal(item, &m)
		uploaded, _ := time.Parse(time.RFC3339, m.Uploaded)
		return []string{m.ID, cmp.Or(m.Release, "any"), m.Name, ui.Bytes(m.Size), shown(uploaded), m.Used}, err
	})
}

type sourcemapsUpload struct {
	Directory string `arg:"" type:"existingdir" help:"Where the bundler has written scripts and their maps: script.js.map of script.js."`
	Release   string `help:"Release as errors name it in their metadata. Maps with a debug id need none." env:"WEIR_RELEASE"`
	URLPrefix string `name:"url-prefix" help:"Where the directory is served, such as ~/static: scheme, host and query do not count." default:"~/"`

	projectReader
}

// Run is called by kong.
func (u *sourcemapsUpload) Run(ctx context.Context) error {
	api, err := u.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return u.upload(ctx, api, os.Stdout)
}

// uploadsAtOnce is how many maps are uploaded at a time: one is read
// and compressed while the other is on its way.
const uploadsAtOnce = 2

// maxListed is how many maps of a release are compared with those to upload.
const maxListed = 10_000

func (u *sourcemapsUpload) upload(ctx context.Context, api *client.Client, out io.Writer) error {
	files, err := mapsIn(u.Directory)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no file *.map in %q: have the bundler write source maps", u.Directory)
	}
	there, err := u.there(ctx, api)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var done, sent int
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploadsAtOnce)
	for _, file := range files {
		group.Go(func() error {
			did, size, err := u.uploadFile(ctx, api, file, there)
			if err != nil {
				return fmt.Errorf("cannot upload %q: %w", file, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; did != wasThere {
				sent++
			}
			fmt.Fprintf(out, "%d of %d  %s  %s  %s\n", done, len(files), terminal.Line(file), ui.Bytes(size), did)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d uploaded, %d were there.\n", sent, done-sent)
	return nil
}

const wasThere = "was there"

// mapsIn are the source maps in a directory, by their paths in it.
func mapsIn(directory string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(directory), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".map") && !strings.HasSuffix(path, ".css.map") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// there are the digests of the release's maps, by script.
func (u *sourcemapsUpload) there(ctx context.Context, api *client.Client) (map[string]string, error) {
	there := map[string]string{} // bounded by maxListed
	if u.Release == "" {
		return there, nil
	}
	found, err := u.found(ctx, api, u.Release, maxListed)
	for _, item := range found {
		var m client.SourceMap
		if err := json.Unmarshal(item, &m); err != nil {
			return nil, fmt.Errorf("cannot read a source map: %w", err)
		}
		there[m.Name] = m.SHA256
	}
	return there, err
}

func (u *sourcemapsUpload) uploadFile(ctx context.Context, api *client.Client, file string, there map[string]string) (did string, size int64, err error) {
	path := filepath.Join(u.Directory, filepath.FromSlash(file))
	text, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	script := strings.TrimSuffix(file, ".map")
	m := client.SourceMap{Release: u.Release, Name: sourcemap.ScriptName(u.URLPrefix + "/" + script), DebugID: debugIDOf(strings.TrimSuffix(path, ".map"))}
	if there[m.Name] == fmt.Sprintf("%x", sha256.Sum256(text)) {
		return wasThere, int64(len(text)), nil
	}
	kept, err := patiently(ctx, func() (client.SourceMap, error) {
		return api.UploadSourceMap(ctx, u.APIKey.Reveal(), u.Project, m, text)
	})
	if err == nil && kept.Unchanged {
		return wasThere, int64(len(text)), nil
	}
	return "uploaded", int64(len(text)), err
}

// debugIDOf is the debug id that a bundler wrote at the end of a script;
// empty if there is none.
func debugIDOf(script string) string {
	text, err := os.ReadFile(script)
	if err != nil {
		return ""
	}
	_, id, found := bytes.Cut(text[max(0, len(text)-1000):], []byte("//# debugId="))
	if !found {
		return ""
	}
	id, _, _ = bytes.Cut(id, []byte{'\n'})
	return string(bytes.TrimSpace(id))
}

// Patience with a server that is busy.
const (
	attempts = 5
	pause    = 2 * time.Second
)

// patiently tries again what the server may do later.
func patiently[T any](ctx context.Context, try func() (T, error)) (done T, err error) {
	for attempt := 1; ; attempt++ {
		done, err = try()
		problem, refused := errors.AsType[*client.Problem](err)
		if !refused || !problem.Temporary() || attempt == attempts {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(max(problem.RetryAfter, pause)):
		}
	}
}

type sourcemapsDelete struct {
	Maps    []string `arg:"" optional:"" name:"map" help:"Ids of maps."`
	Release string   `help:"All maps of this release."`

	projectReader
}

// Validate is called by kong.
func (d *sourcemapsDelete) Validate() error {
	if (len(d.Maps) == 0) == (d.Release == "") {
		return errors.New("name maps or a --release")
	}
	return nil
}

// Run is called by kong.
func (d *sourcemapsDelete) Run(ctx context.Context) error {
	api, err := d.openProject()
	if err != nil {
		return err
	}
	defer api.Close()
	return d.delete(ctx, api, os.Stdout)
}

func (d *sourcemapsDelete) delete(ctx context.Context, api *client.Client, out io.Writer) error {
	if d.Release != "" {
		found, err := d.found(ctx, api, d.Release, maxListed)
		if err != nil {
			return err
		}
		for _, item := range found {
			var m client.SourceMap
			if err := json.Unmarshal(item, &m); err != nil {
				return fmt.Errorf("cannot read a source map: %w", err)
			}
			d.Maps = append(d.Maps, m.ID)
		}
	}
	for _, id := range d.Maps {
		if err := api.DeleteSourceMap(ctx, d.APIKey.Reveal(), d.Project, id); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d deleted.\n", len(d.Maps))
	return nil
}
