package identity

import (
	"cmp"
	"slices"

	"github.com/weirlog/weir/shared/contract"
)

// A Member is a member of an organization as colleagues know them.
type Member struct{ ID, Name, Role string }

// maxMembers is how many members of an organization have names here: more
// than there may be by default. Those added later show their ids.
const maxMembers = 2000

// members are those of each organization, the oldest first; bounded by the
// existing organizations, and maxMembers each.
type members map[string][]Member

func (m members) added(fact contract.MemberAdded) {
	if known := m[fact.Organization]; m.place(fact.Organization, fact.Member) < 0 && len(known) < maxMembers {
		m[fact.Organization] = append(known, Member{fact.Member, fact.Name, fact.Role})
	}
}

func (m members) roleChanged(fact contract.MemberRoleChanged) {
	if i := m.place(fact.Organization, fact.Member); i >= 0 {
		m[fact.Organization][i].Role = fact.Role
	}
}

func (m members) removed(fact contract.MemberRemoved) {
	if i := m.place(fact.Organization, fact.Member); i >= 0 {
		m[fact.Organization] = slices.Delete(m[fact.Organization], i, i+1)
	}
}

// place returns the place of a member, or -1.
func (m members) place(organization, id string) int {
	return slices.IndexFunc(m[organization], func(member Member) bool { return member.ID == id })
}

// NoReader returns the first of some ids that is of no member of an
// organization whose role may see something; found reports whether one is.
func (d *Directory) NoReader(organization string, read Read, ids ...string) (id string, found bool) {
	able := d.MembersThatRead(organization, read)
	at := slices.IndexFunc(ids, func(id string) bool { return !slices.ContainsFunc(able, func(m Member) bool { return m.ID == id }) })
	if at < 0 {
		return "", false
	}
	return ids[at], true
}

// MembersThatRead returns the members of an organization whose role may see
// something, sorted by name.
func (d *Directory) MembersThatRead(organization string, read Read) []Member {
	d.mu.RLock()
	defer d.mu.RUnlock()
	able := slices.DeleteFunc(slices.Clone(d.members[organization]), func(m Member) bool { return !RoleReads(m.Role, read) })
	slices.SortFunc(able, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return able
}

// CountThatRead counts those of MembersThatRead of whom something is true, in less time.
func (d *Directory) CountThatRead(organization string, read Read, is func(Member) bool) (n int) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, m := range d.members[organization] {
		if RoleReads(m.Role, read) && is(m) {
			n++
		}
	}
	return n
}
