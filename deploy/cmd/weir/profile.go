package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

type profileCommand struct {
	Add    profileAdd    `cmd:"" help:"Add a profile."`
	List   profileList   `cmd:"" help:"List the profiles. * is in use."`
	Use    profileUse    `cmd:"" help:"Use a profile."`
	Remove profileRemove `cmd:"" help:"Forget a profile with its key and token."`
}

type profileAdd struct {
	Name         string `arg:"" help:"Name of the profile, such as prod."`
	BaseURL      string `help:"Address of the API, such as https://weir.example.com/v1. Without it, what weir run has started." env:"WEIR_BASE_URL"`
	CAFile       string `name:"ca-file" help:"Authority of the address, if no public one." env:"WEIR_CA_FILE"`
	Organization string `help:"Id of the organization, for weir usage." env:"WEIR_ORGANIZATION"`
	Project      string `help:"Id of the project, for weir errors." env:"WEIR_PROJECT"`
	DataDir      string `help:"Data directory of a running weir." env:"WEIR_DATA_DIR" default:".weir"`
	Replace      bool   `help:"Replace a profile of this name."`
}

// Help is called by kong.
func (profileAdd) Help() string {
	return `The key is no argument, which others on the machine could see. It is taken from WEIR_API_KEY, else from standard input, in the first line;
a service token with billing:read, for weir usage, from WEIR_SERVICE_TOKEN, else from the second line. Either may be left out. They are kept in a file
that only you may read.

  weir profile add local                                           what make run has started
  weir profile add prod --base-url=https://weir.example.com/v1     asks for key and token
  weir profile add prod --base-url=https://weir.example.com/v1 <key.txt`
}

// Run is called by kong.
func (a *profileAdd) Run() error {
	added, err := a.profile()
	if err != nil {
		return err
	}
	return profile.Change(func(all *profile.Profiles) error {
		if _, there := all.ByName[a.Name]; there && !a.Replace {
			return fmt.Errorf("there is a profile %q: take another name, or replace it by --replace", a.Name)
		}
		all.ByName[a.Name] = added
		if all.Used = cmp.Or(all.Used, a.Name); all.Used != a.Name {
			fmt.Fprintf(os.Stdout, "%s is still in use: weir profile use %s\n", all.Used, a.Name)
		}
		return nil
	})
}

func (a *profileAdd) profile() (added profile.Profile, err error) {
	if a.BaseURL == "" {
		return demoProfile(a.DataDir)
	}
	if !strings.HasPrefix(a.BaseURL, "https://") || !strings.HasSuffix(strings.TrimSuffix(a.BaseURL, "/"), "/v1") {
		return added, fmt.Errorf("the address is %q: it is such as https://weir.example.com/v1", a.BaseURL)
	}
	added = profile.Profile{BaseURL: a.BaseURL, Organization: a.Organization, Project: a.Project}
	if a.CAFile != "" {
		if added.CAFile, err = filepath.Abs(a.CAFile); err != nil {
			return added, err
		}
	}
	if added.APIKey, err = secretFrom("WEIR_API_KEY"); err != nil {
		return added, err
	}
	if added.ServiceToken, err = secretFrom("WEIR_SERVICE_TOKEN"); err != nil {
		return added, err
	}
	if added.APIKey == "" && added.ServiceToken == "" {
		err = readSecrets(os.Stdin, os.Stderr, &added)
	}
	return added, err
}

// secretFrom returns the secret in a variable, or in the file that the
// variable with _FILE names.
func secretFrom(variable string) (httpapi.Secret, error) {
	if name := os.Getenv(variable + process.FileSuffix); name != "" {
		secret, err := process.SecretIn(name, variable+process.FileSuffix)
		return httpapi.Secret(secret), err
	}
	return httpapi.Secret(os.Getenv(variable)), nil
}

// readSecrets reads key and token, a line each. On a terminal it asks for
// them and shows nothing.
func readSecrets(in *os.File, prompt io.Writer, added *profile.Profile) error {
	lines := bufio.NewScanner(in)
	for _, secret := range []struct {
		name string
		into *httpapi.Secret
	}{{"API key", &added.APIKey}, {"Service token with billing:read, for weir usage (Enter for none)", &added.ServiceToken}} {
		text := ""
		if term.IsTerminal(int(in.Fd())) {
			fmt.Fprintf(prompt, "%s: ", secret.name)
			typed, err := term.ReadPassword(int(in.Fd()))
			fmt.Fprintln(prompt)
			if err != nil {
				return err
			}
			text = string(typed)
		} else if lines.Scan() {
			text = lines.Text()
		}
		*secret.into = httpapi.Secret(strings.TrimSpace(text))
	}
	if lines.Err() == nil && added.APIKey == "" && added.ServiceToken == "" {
		return errors.New("there is neither key nor token: set WEIR_API_KEY, or write the key to standard input")
	}
	return lines.Err()
}

type profileList struct {
	JSON bool `name:"json" help:"Print JSON, a profile on each line, without secrets."`
}

// A listed profile has its name.
type listed struct {
	Name string `json:"name"`
	Used bool   `json:"used"`
	profile.Profile
}

// Run is called by kong.
func (l *profileList) Run() error { return l.print(terminal.Of(os.Stdout)) }

func (l *profileList) print(screen terminal.Screen) error {
	all, err := profile.Read()
	if err != nil {
		return err
	}
	var items []json.RawMessage
	for _, name := range slices.Sorted(maps.Keys(all.ByName)) {
		item, err := json.Marshal(listed{name, name == all.Used, all.ByName[name]})
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	head := []string{"", "NAME", "HAS", "PROJECT", "ADDRESS"}
	return screen.List(l.JSON, items, "There are no profiles: weir profile add --help", head, func(item json.RawMessage) ([]string, error) {
		var p listed
		err := json.Unmarshal(item, &p)
		mark, has := "", ""
		if p.Used {
			mark = "*"
		}
		if p.APIKey != "" {
			has = "key "
		}
		if p.ServiceToken != "" {
			has += "token"
		}
		return []string{mark, p.Name, has, p.Project, p.BaseURL}, err
	})
}

type profileUse struct {
	Name string `arg:"" complete:"profile" help:"Name of the profile."`
}

// Run is called by kong.
func (u *profileUse) Run() error {
	return profile.Change(func(all *profile.Profiles) error {
		all.Used = u.Name
		_, err := all.Find(u.Name)
		return err
	})
}

type profileRemove struct {
	Name string `arg:"" complete:"profile" help:"Name of the profile."`
}

// Run is called by kong.
func (r *profileRemove) Run() error {
	return profile.Change(func(all *profile.Profiles) error {
		_, err := all.Find(r.Name)
		if delete(all.ByName, r.Name); all.Used == r.Name {
			all.Used = ""
		}
		return err
	})
}
