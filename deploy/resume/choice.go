package resume

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tenants "github.com/weirlog/weir/tenants/app"
)

// A Choice is what becomes of organizations, projects and keys that others
// know and tenants does not. Without one they stay as they are, but for
// keys, which are taken back.
type Choice struct {
	Readopt []string `help:"Organizations, projects or keys to make exist again, with all of theirs that is listed: their ids, or all." placeholder:"ID"`
	Owner   []string `help:"Who is invited as a readopted organization's first owner: an e-mail address, or ORGANIZATION=ADDRESS for each." placeholder:"ADDRESS"`
	Erase   []string `help:"Organizations or projects to erase everywhere: their ids, or all." placeholder:"ID"`

	ConsoleOrigin string `help:"Where people reach the console, for links to invitations." env:"WEIR_CONSOLE_ORIGIN" default:"https://localhost:8443"`
}

// everything is the choice of all that is listed.
const everything = "all"

// A fate is what becomes of an orphan.
type fate int

const (
	stays fate = iota
	readopted
	erased
)

// check refuses choices that contradict one another.
func (c Choice) check() error {
	for _, id := range c.Readopt {
		if slices.Contains(c.Erase, id) {
			return fmt.Errorf("%s is to be readopted and erased: choose one", id)
		}
	}
	return nil
}

// of returns what is chosen for an orphan: by its id, by that of what it
// belongs to, or by all.
func (c Choice) of(o tenants.Orphan) fate {
	for _, id := range []string{o.ID(), o.Project, o.Organization, everything} {
		switch {
		case slices.Contains(c.Readopt, id):
			return readopted
		case slices.Contains(c.Erase, id):
			return erased
		}
	}
	return stays
}

// readopts are the ids to readopt. With all, these are also organizations
// that an owner is named for: an earlier run may have readopted them.
func (c Choice) readopts() []string {
	ids := slices.Clone(c.Readopt)
	if slices.Contains(c.Readopt, everything) {
		for _, owner := range c.Owner {
			if organization, _, named := strings.Cut(owner, "="); named {
				ids = append(ids, organization)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// lists reports whether something with an id is listed; all is.
func (o *orphans) lists(id string) bool {
	return id == everything || slices.ContainsFunc(o.all, func(one orphan) bool { return one.ID() == id })
}

// checkKnown refuses ids that are not listed, but for those of what an
// earlier run has readopted or erased.
func (o *orphans) checkKnown() error {
	for _, id := range slices.Concat(o.Readopt, o.Erase) {
		if !o.lists(id) && !slices.Contains(o.again, id) && !slices.Contains(o.done, id) {
			return fmt.Errorf("%q is not among what tenants lacks: weir resume lists that", id)
		}
	}
	for _, one := range o.all {
		switch {
		case one.fate == erased && one.Key != "" && slices.Contains(o.Erase, one.ID()):
			return fmt.Errorf("%s is a key: without --readopt it is taken back, and nothing of it is left", one.ID())
		case one.fate == readopted && one.Deleted && slices.Contains(o.Readopt, one.ID()):
			return fmt.Errorf("%s is deleted, or was going to be: it can only be erased", one.ID())
		case one.fate == readopted && o.missing(one) != "":
			return fmt.Errorf("%s belongs to %s, which is not there either: readopt that, too", one.ID(), o.missing(one))
		case one.fate == erased && one.Key == "" && o.missing(one) != "" && !o.erases(one.Organization):
			return fmt.Errorf("%s belongs to %s, which is not there either: erase that, or readopt it", one.ID(), o.missing(one))
		}
	}
	return nil
}

// missing returns the id of what an orphan belongs to, where that neither
// exists nor will. Empty: there is no such thing.
func (o *orphans) missing(one orphan) string {
	for _, whole := range o.all {
		if whole.fate != readopted && whole.ID() != one.ID() && (whole.ID() == one.Organization || whole.ID() == one.Project) {
			return whole.ID()
		}
	}
	return ""
}

var errNoOwner = errors.New("it needs an owner")

// chooseOwners finds the owner of each organization that is to be readopted.
func (o *orphans) chooseOwners() error {
	organizations := slices.Clone(o.again)
	for _, one := range o.all {
		if one.fate == readopted && one.ID() == one.Organization {
			organizations = append(organizations, one.ID())
		}
	}
	o.owners = map[string]string{}
	for _, owner := range o.Owner {
		if err := o.addOwner(owner, organizations); err != nil {
			return err
		}
	}
	for _, organization := range organizations {
		if o.owners[organization] == "" {
			return fmt.Errorf("%s: %w: --owner=ADDRESS names who is invited", organization, errNoOwner)
		}
	}
	return nil
}

// addOwner notes an owner of one of the organizations.
func (o *orphans) addOwner(owner string, organizations []string) error {
	organization, address, named := strings.Cut(owner, "=")
	if !named && len(organizations) == 1 {
		organization, address = organizations[0], owner
	}
	switch {
	case address == "":
		return fmt.Errorf("--owner=%s is for one organization, and %d are to be readopted: use --owner=ORGANIZATION=ADDRESS for each", owner, len(organizations))
	case !slices.Contains(organizations, organization):
		return fmt.Errorf("--owner=%s names an organization that is not to be readopted", owner)
	case o.owners[organization] != "":
		return fmt.Errorf("--owner=%s names another owner of %s: one is enough, who invites others", owner, organization)
	}
	for _, other := range o.owners {
		if strings.EqualFold(other, address) {
			return fmt.Errorf("--owner=%s names an owner of another organization: nobody is a member of two", owner)
		}
	}
	o.owners[organization] = address
	return nil
}
