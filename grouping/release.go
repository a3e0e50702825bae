package grouping

import (
	"cmp"
	"strings"
	"time"
)

// MaxRelease is how many bytes the name of a release has
// at most. A longer one is none.
const MaxRelease = 200

// KnownRelease is a release as it counts; empty if it is none.
func KnownRelease(release string) string {
	if len(release) > MaxRelease || !isLine(release) {
		return ""
	}
	return release
}

// A SeenRelease is when a release was first accepted in an environment.
type SeenRelease struct {
	Environment, Release string
	First                time.Time
}

// SeenReleases are the known releases of a project. Two are compared by
// semantic version where both are one, else by what was seen first. A name
// such as shop@2.1.0 belongs to a package; those of different ones are not
// compared.
type SeenReleases []SeenRelease

// Newest is the newest release of the package of another one;
// empty if there is none.
func (s SeenReleases) Newest(like string) string {
	return s.newest(like, func(SeenRelease) bool { return true })
}

// InEach is the newest release in each environment, of the package of another one.
func (s SeenReleases) InEach(like string) map[string]string {
	newest := map[string]string{} // bounded by the sights of a project
	for _, sight := range s {
		if newest[sight.Environment] == "" {
			if found := s.newest(like, func(other SeenRelease) bool { return other.Environment == sight.Environment }); found != "" {
				newest[sight.Environment] = found
			}
		}
	}
	return newest
}

func (s SeenReleases) newest(like string, counts func(SeenRelease) bool) (newest string) {
	var at time.Time
	for _, sight := range s {
		if counts(sight) && samePackage(sight.Release, like) && (newest == "" || later(sight.Release, sight.First, newest, at)) {
			newest, at = sight.Release, sight.First
		}
	}
	return newest
}

// later reports whether a release comes after another, by their first sights.
func later(a string, firstA time.Time, b string, firstB time.Time) bool {
	if order, ok := compareVersions(a, b); ok && order != 0 {
		return order > 0
	}
	return cmp.Or(firstA.Compare(firstB), cmp.Compare(a, b)) > 0
}

// first is when a release was first seen anywhere.
func (s SeenReleases) first(release string) (at time.Time, known bool) {
	for _, sight := range s {
		if sight.Release == release && (!known || sight.First.Before(at)) {
			at, known = sight.First, true
		}
	}
	return at, known
}

// reached reports whether a release is another one or comes after it. Without
// versions it does only if some environment has seen both in this order: what
// one environment runs beside another says nothing about either.
func (s SeenReleases) reached(release, of string) bool {
	if release == of {
		return true
	}
	if !samePackage(release, of) {
		return false
	}
	if order, ok := compareVersions(release, of); ok {
		return order >= 0
	}
	seen := map[string]time.Time{} // bounded by the sights of a project
	for _, sight := range s {
		if sight.Release == of {
			seen[sight.Environment] = sight.First
		}
	}
	for _, sight := range s {
		if since, both := seen[sight.Environment]; both && sight.Release == release && sight.First.After(since) {
			return true
		}
	}
	return false
}

// Unordered reports whether nothing tells which of two releases is newer.
func (s SeenReleases) Unordered(a, b string) bool {
	return a != "" && b != "" && !s.reached(a, b) && !s.reached(b, a)
}

// splitRelease separates the package of a release, such as shop@2.1.0.
func splitRelease(release string) (of, version string) {
	if at := strings.LastIndexByte(release, '@'); at > 0 {
		return release[:at], release[at+1:]
	}
	return "", release
}

func samePackage(a, b string) bool {
	ofA, _ := splitRelease(a)
	ofB, _ := splitRelease(b)
	return ofA == ofB
}

// compareVersions compares two releases by the rules of semver.org, if
// both are versions. Two numbers are enough for one, and v may precede them. Two
// builds of one version can't be compared.
func compareVersions(a, b string) (order int, ok bool) {
	_, a = splitRelease(a)
	_, b = splitRelease(b)
	x, okX := parseVersion(a)
	y, okY := parseVersion(b)
	if !okX || !okY {
		return 0, false
	}
	for i := range max(len(x.numbers), len(y.numbers)) {
		if order := compareNumbers(part(x.numbers, i, "0"), part(y.numbers, i, "0")); order != 0 {
			return order, true
		}
	}
	order = comparePre(x.pre, y.pre)
	return order, order != 0 || x.build == y.build || x.build == "" || y.build == ""
}

type version struct {
	numbers, pre []string
	build        string
}

func parseVersion(text string) (v version, ok bool) {
	text, v.build, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	text, pre, isPre := strings.Cut(text, "-")
	if v.numbers = strings.Split(text, "."); len(v.numbers) < 2 {
		return v, false
	}
	for _, n := range v.numbers {
		if !isNumber(n) {
			return v, false
		}
	}
	if isPre {
		v.pre = strings.Split(pre, ".")
	}
	return v, true
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

func part(of []string, i int, missing string) string {
	if i < len(of) {
		return of[i]
	}
	return missing
}

// compareNumbers compares digits of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// comparePre compares what follows the hyphen: without it comes last.
func comparePre(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	for i := range min(len(a), len(b)) {
		order := cmp.Compare(a[i], b[i])
		switch numberA, numberB := isNumber(a[i]), isNumber(b[i]); {
		case numberA && numberB:
			order = compareNumbers(a[i], b[i])
		case numberA:
			order = -1
		case numberB:
			order = 1
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}
