package grouping_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
)

var first = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// sight is a release seen first so many hours after the first one.
func sight(environment, release string, hours int) grouping.SeenRelease {
	return grouping.SeenRelease{Environment: environment, Release: release, First: first.Add(time.Duration(hours) * time.Hour)}
}

func TestNewestRelease(t *testing.T) {
	for name, c := range map[string]struct {
		known      grouping.SeenReleases
		like, want string
	}{
		"none":                               {nil, "", ""},
		"seen last":                          {grouping.SeenReleases{sight("prod", "b", 1), sight("prod", "a", 2)}, "", "a"},
		"the highest version":                {grouping.SeenReleases{sight("prod", "2.10.0", 1), sight("prod", "2.9.1", 2)}, "", "2.10.0"},
		"of any environment":                 {grouping.SeenReleases{sight("prod", "2.1.0", 1), sight("staging", "2.2.0", 2)}, "", "2.2.0"},
		"a release after its candidate":      {grouping.SeenReleases{sight("prod", "2.1.0-rc.1", 2), sight("prod", "2.1.0", 1)}, "", "2.1.0"},
		"candidates by number":               {grouping.SeenReleases{sight("prod", "2.1.0-rc.10", 1), sight("prod", "2.1.0-rc.9", 2)}, "", "2.1.0-rc.10"},
		"of the same package":                {grouping.SeenReleases{sight("prod", "shop@1.0.0", 1), sight("prod", "web@551", 2)}, "shop@0.9.0", "shop@1.0.0"},
		"without a package if that has none": {grouping.SeenReleases{sight("prod", "1.0.0", 1), sight("prod", "web@551", 2)}, "", "1.0.0"},
		"with and without v":                 {grouping.SeenReleases{sight("prod", "v1.10", 1), sight("prod", "1.9.3", 2)}, "", "v1.10"},
		"a word among versions":              {grouping.SeenReleases{sight("prod", "1.9.3", 1), sight("prod", "hotfix", 2)}, "", "hotfix"},
		"numbers of any length":              {grouping.SeenReleases{sight("prod", "1.99999999999999999999", 1), sight("prod", "1.100000000000000000000", 0)}, "", "1.100000000000000000000"},
	} {
		if got := c.known.Newest(c.like); got != c.want {
			t.Errorf("%s: the newest is %q, want %q", name, got, c.want)
		}
	}
}

// A fix in one environment says nothing about what another one runs.
func TestRegressionOfReleases(t *testing.T) {
	known := grouping.SeenReleases{
		sight("staging", "abc", 1), sight("prod", "abc", 2), sight("staging", "def", 3), sight("staging", "ghi", 4), sight("prod", "xyz", 5),
		sight("prod", "2.13.0", 1), sight("staging", "2.14.0", 3), sight("prod", "2.15.0", 12), sight("dev", "3.0.0-dev", 2), sight("prod", "2.12.9", 12),
		sight("prod", "jkl", 12), sight("prod", "web@552", 12),
	}
	decided := first.Add(10 * time.Hour)
	next := grouping.Resolution{Next: true, After: map[string]string{"prod": "2.13.0", "staging": "2.14.0", "dev": "3.0.0-dev"}}
	for name, c := range map[string]struct {
		in                   grouping.Resolution
		environment, release string
		want                 bool
	}{
		"now, without a release":                        {grouping.Resolution{}, "prod", "", true},
		"now, in any release":                           {grouping.Resolution{}, "prod", "abc", true},
		"in a version, in an older one":                 {grouping.Resolution{Release: "2.14.0"}, "prod", "2.13.0", false},
		"in a version, in itself":                       {grouping.Resolution{Release: "2.14.0"}, "staging", "2.14.0", true},
		"in a version, in a newer one":                  {grouping.Resolution{Release: "2.14.0"}, "prod", "2.15.0", true},
		"in a version, in an equal one":                 {grouping.Resolution{Release: "2.14.0"}, "prod", "v2.14.0+build7", true},
		"in a build, in another build that nobody saw":  {grouping.Resolution{Release: "2.14.0+46"}, "prod", "2.14.0+45", false},
		"in a version, without a release":               {grouping.Resolution{Release: "2.14.0"}, "prod", "", false},
		"in a version, of another package":              {grouping.Resolution{Release: "2.14.0"}, "prod", "web@3.0.0", false},
		"in a release of staging, prod runs the old":    {grouping.Resolution{Release: "def"}, "prod", "abc", false},
		"in a release of staging, prod mends the old":   {grouping.Resolution{Release: "def"}, "prod", "xyz", false},
		"in a release of staging, prod has a later one": {grouping.Resolution{Release: "def"}, "prod", "ghi", true},
		"in a release that nobody saw":                  {grouping.Resolution{Release: "zzz"}, "prod", "ghi", false},
		"in the next, in the one of prod":               {next, "prod", "2.13.0", false},
		"in the next, prod gets the one of staging":     {next, "prod", "2.14.0", false},
		"in the next, in one that nobody had seen":      {next, "prod", "2.15.0", true},
		"in the next, in an old one that comes late":    {next, "prod", "2.12.9", false},
		"in the next, in one without a version":         {next, "prod", "jkl", true},
		"in the next, of another package":               {next, "prod", "web@552", false},
		"in the next, without a release":                {next, "prod", "", false},
		"in the next, in an environment that had none":  {next, "qa", "2.15.0", true},
	} {
		state := grouping.State{Status: grouping.Resolved, Since: decided, Resolution: c.in}
		_, got := state.Observe([]grouping.Seen{{Environment: c.environment, Release: c.release, Times: []int64{decided.UnixMicro() + 1}}}, known)
		if got != c.want {
			t.Errorf("%s: it is a regression: %t, want %t", name, got, c.want)
		}
	}
}

// Two releases have an order if both are versions of a package, or an environment had both.
func TestUnorderedReleases(t *testing.T) {
	known := grouping.SeenReleases{sight("prod", "abc", 1), sight("prod", "def", 2), sight("staging", "ghi", 3)}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1.2", "1.10", false}, {"abc", "def", false}, {"abc", "abc", false}, {"", "abc", false},
		{"abc", "ghi", true}, {"1.2", "abc", true}, {"web@1.2", "api@1.3", true}, {"1.2+a", "1.2+b", true},
	} {
		if known.Unordered(c.a, c.b) != c.want || known.Unordered(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %t", c.a, c.b, c.want)
		}
	}
}
