package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/profile"
	"github.com/weirlog/weir/shared/httpapi"
)

// A connection says which installation a command reads: a named address, a
// profile, or what weir run has started, in this order. A key or token
// that is named goes before that of the profile; a named address never
// gets those of a profile.
type connection struct {
	Profile string `help:"Profile to use, instead of the one in use (weir profile list)." env:"WEIR_PROFILE" complete:"profile"`
	BaseURL string `help:"Address of the API, such as https://weir.example.com/v1." env:"WEIR_BASE_URL"`
	CAFile  string `name:"ca-file" help:"Authority of the address, if no public one." env:"WEIR_CA_FILE"`
	DataDir string `help:"Data directory of a running weir; its dev.env has the address and a key." env:"WEIR_DATA_DIR" default:".weir"`
}

// reach returns what is named, or kept, of the installation.
func (c *connection) reach() (profile.Profile, error) {
	switch {
	case c.BaseURL != "" && c.Profile != "":
		return profile.Profile{}, fmt.Errorf("both an address and profile %q are named: unset WEIR_BASE_URL (--base-url), or leave the profile out", c.Profile)
	case c.BaseURL != "":
		return profile.Profile{BaseURL: c.BaseURL, CAFile: c.CAFile}, nil
	}
	all, err := profile.Read()
	name := cmp.Or(c.Profile, all.Used)
	if name == "" && err == nil {
		return demoProfile(c.DataDir)
	}
	if err != nil {
		return profile.Profile{}, err
	}
	found, err := all.Find(name)
	found.CAFile = cmp.Or(c.CAFile, found.CAFile)
	return found, err
}

// demoProfile is the demo organization of what weir run has started.
func demoProfile(dataDir string) (profile.Profile, error) {
	env, err := allinone.ReadDevEnv(filepath.Join(dataDir, allinone.EnvFile))
	if err == nil && (env.BaseURL == "" || env.APIKey == "") {
		err = fmt.Errorf("there is nothing to read in %q: start `weir run` (make run) first, or name an address with WEIR_BASE_URL and a key with WEIR_API_KEY, "+
			"or keep them by `weir profile add`", dataDir)
	}
	if err == nil && !isLocal(env.BaseURL) { // such a file can come with any directory
		err = fmt.Errorf("%q in %q is no address of this machine: keep it in a profile (weir profile add --help) to send keys there",
			env.BaseURL, filepath.Join(dataDir, allinone.EnvFile))
	}
	return profile.Profile{
		BaseURL: env.BaseURL, CAFile: env.CAFile, Organization: env.Organization, Project: env.Project,
		APIKey: httpapi.Secret(env.APIKey), ServiceToken: httpapi.Secret(env.ServiceToken),
	}, err
}

func isLocal(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// A reader reads logs and errors.
type reader struct {
	connection

	APIKey httpapi.Secret `name:"api-key" help:"An API key that may read." env:"WEIR_API_KEY"`
}

// open returns a client, to be closed; then APIKey is set.
func (r *reader) open() (*client.Client, profile.Profile, error) {
	found, err := r.reach()
	if err != nil {
		return nil, found, err
	}
	if r.APIKey = cmp.Or(r.APIKey, found.APIKey); r.APIKey == "" {
		return nil, found, missing("an API key that may read", "WEIR_API_KEY")
	}
	api, err := client.New(found.BaseURL, found.CAFile, 1)
	return api, found, err
}

func (r *reader) caller() client.Caller { return client.ByKey(r.APIKey.Reveal()) }

func missing(what, variable string) error {
	return fmt.Errorf("this needs %s: set %s, or keep it in a profile (weir profile add --help)", what, variable)
}

// A span limits a list by time.
type span struct {
	From time.Time `help:"From this time on, in RFC 3339." format:"2006-01-02T15:04:05Z07:00"`
	To   time.Time `help:"Before this time, in RFC 3339." format:"2006-01-02T15:04:05Z07:00"`
}

func (s span) query() url.Values {
	query := url.Values{}
	if !s.From.IsZero() {
		query.Set("from", s.From.UTC().Format(time.RFC3339Nano))
	}
	if !s.To.IsZero() {
		query.Set("to", s.To.UTC().Format(time.RFC3339Nano))
	}
	return query
}

// setAll sets the parameters that have a value.
func setAll(query url.Values, parameters map[string]string) {
	for name, value := range parameters {
		if value != "" {
			query.Set(name, value)
		}
	}
}
