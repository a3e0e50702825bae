package ui

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/identity"
)

// maxOffered is how many members a form offers beside those who are chosen.
const maxOffered = 20

// ofMember begins the value of a box that stands for a member and not for a role.
const ofMember = "member:"

// MailChecks are the roles and members who may get mail of what they may read,
// of whom some are chosen; MailIn reads them. It offers the roles, the reader,
// the chosen members and the first 20 others.
func MailChecks(directory *identity.Directory, who identity.Principal, read identity.Read, roles, chosen []string) Checks {
	of := Checks{Name: "mail", Legend: "Mail goes to"}
	for _, role := range identity.RolesThatRead(read) {
		of.Choices = append(of.Choices, Choice{Value: role, Text: role + "s", Selected: slices.Contains(roles, role)})
	}
	members, names := append([]string{who.Member}, chosen...), map[string]string{} // bounded by the members of an organization
	for i, m := range directory.MembersThatRead(who.Organization, read) {
		if names[m.ID] = m.Name; i < maxOffered {
			members = append(members, m.ID)
		}
	}
	names[who.Member] = "you"
	for i, member := range members {
		if !slices.Contains(members[:i], member) {
			of.Choices = append(of.Choices, Choice{Value: ofMember + member, Text: cmp.Or(names[member], member), Selected: slices.Contains(chosen, member)})
		}
	}
	return of
}

// MailIn reads which roles and members are checked in a form.
func MailIn(r *http.Request) (roles, members []string) {
	for _, to := range r.PostForm["mail"] {
		if member, is := strings.CutPrefix(to, ofMember); is {
			members = append(members, member)
		} else {
			roles = append(roles, to)
		}
	}
	return roles, members
}
