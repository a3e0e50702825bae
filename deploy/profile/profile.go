package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/httpapi"
)

// A Profile is one installation, and as whom it is reached. Its JSON has
// no secrets.
type Profile struct {
	BaseURL      string         `json:"base_url"`          // ends in /v1
	CAFile       string         `json:"ca_file,omitempty"` // absolute; "": public authorities
	Organization string         `json:"organization,omitempty"`
	Project      string         `json:"project,omitempty"`
	APIKey       httpapi.Secret `json:"api_key,omitempty"`       // reads logs and errors
	ServiceToken httpapi.Secret `json:"service_token,omitempty"` // reads usage
}

// kept is a profile in the file, the only place where secrets are text.
type kept struct {
	Profile

	APIKey       string `json:"api_key,omitempty"`
	ServiceToken string `json:"service_token,omitempty"`
}

// Profiles are those of a person.
type Profiles struct {
	Used   string             // the one in use; "": none
	ByName map[string]Profile // bounded by what a person adds
}

// file is what the file holds.
type file struct {
	Used     string          `json:"used"`
	Profiles map[string]kept `json:"profiles"` // bounded by what a person adds
}

// path returns the file of the person who runs the process, such as
// ~/.config/weir/profiles.json.
func path() (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for profiles: set HOME or XDG_CONFIG_HOME: %w", err)
	}
	return filepath.Join(config, "weir", "profiles.json"), nil
}

// Read returns all profiles: none for a process that has no such folder.
func Read() (Profiles, error) {
	all := Profiles{ByName: map[string]Profile{}}
	path, err := path()
	if err != nil {
		return all, nil //nolint:nilerr // such as in a container; Change says what to do
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	var from file
	if err == nil {
		err = json.Unmarshal(text, &from)
	}
	if err != nil {
		return all, fmt.Errorf("cannot read the profiles: repair %q, or remove it and add them again: %w", path, err)
	}
	all.Used = from.Used
	for name, k := range from.Profiles {
		k.Profile.APIKey, k.Profile.ServiceToken = httpapi.Secret(k.APIKey), httpapi.Secret(k.ServiceToken)
		all.ByName[name] = k.Profile
	}
	return all, nil
}

// Find returns a profile.
func (p Profiles) Find(name string) (Profile, error) {
	found, ok := p.ByName[name]
	if !ok {
		return found, fmt.Errorf("there is no profile %q: `weir profile list` shows those there are, `weir profile add %s` adds it", name, name)
	}
	return found, nil
}

// Change has the profiles changed, and keeps them durably, readable by
// their owner alone.
func Change(change func(*Profiles) error) error {
	path, err := path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := filelock.Take(path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	all, err := Read()
	if err == nil {
		err = change(&all)
	}
	if err != nil {
		return err
	}
	to := file{all.Used, map[string]kept{}}
	for name, p := range all.ByName {
		to.Profiles[name] = kept{p, p.APIKey.Reveal(), p.ServiceToken.Reveal()}
	}
	text, err := json.MarshalIndent(to, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, string(text)+"\n", 0o600)
}
