package grouping

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of merges.
const (
	MaxMerged  = 100  // groups of one request
	MaxMembers = 1000 // of a head
)

// A Family is what people see as one group: its head, and the groups that were merged into it, its members.
type Family struct {
	Head    GroupVersion
	Members []GroupVersion
}

// A GroupVersion is a group of a family, with its version.
type GroupVersion struct {
	ID      string
	Version int64
}

// GroupDecisions are decisions about groups by their ids; bounded by two families.
type GroupDecisions map[string]Decision

// Merge decides that the groups of other families belong to the head: none
// is ever below a member.
func (f Family) Merge(others []Family, ifVersion *int64, now time.Time) (GroupDecisions, error) {
	decided := GroupDecisions{}
	for _, other := range others {
		if other.Head.ID == f.Head.ID {
			continue
		}
		decided[other.Head.ID] = Decision{Kind: WasMerged, At: now, Into: f.Head.ID}
		for _, member := range other.Members {
			decided[member.ID] = Decision{Kind: WasMerged, At: now, Into: f.Head.ID, Reason: "The group that it belonged to was merged."}
		}
		if slices.ContainsFunc(other.all(), GroupVersion.full) {
			return nil, ErrFull
		}
	}
	if n := len(f.Members) + len(decided); n > MaxMembers {
		return nil, Invalid{"into", fmt.Sprintf("The group would then consist of %s others.", thousands(n)),
			fmt.Sprintf("Merge at most %s groups into one.", thousands(MaxMembers))}
	}
	if len(decided) > 0 && f.Head.full() {
		return nil, ErrFull
	}
	return f.decide(decided, WasMerged, ifVersion, now)
}

// full reports whether the group has as many decisions as it may.
func (k GroupVersion) full() bool { return k.Version >= MaxDecisions }

func (f Family) all() []GroupVersion { return append([]GroupVersion{f.Head}, f.Members...) }

// Unmerge decides that members are groups of their own again; others are
// so already. A group that is full may be taken out, too.
func (f Family) Unmerge(ids []string, ifVersion *int64, now time.Time) (GroupDecisions, error) {
	decided := GroupDecisions{}
	for i, id := range ids {
		if id == f.Head.ID && len(f.Members) > 0 {
			return nil, Invalid{fmt.Sprintf("groups/%d", i), "The others are merged into this group.", "Take the others out of it."}
		}
		if slices.ContainsFunc(f.Members, func(k GroupVersion) bool { return k.ID == id }) {
			decided[id] = Decision{Kind: WasUnmerged, At: now, From: f.Head.ID}
		}
	}
	return f.decide(decided, WasUnmerged, ifVersion, now)
}

// decide adds the head's own decision.
func (f Family) decide(decided GroupDecisions, kind Kind, ifVersion *int64, now time.Time) (GroupDecisions, error) {
	if ifVersion != nil && *ifVersion != f.Head.Version {
		return nil, Conflict{Wanted: *ifVersion, Version: f.Head.Version, Group: f.Head.ID}
	}
	head := Decision{Kind: kind, At: now}
	for id := range decided {
		head.Groups = append(head.Groups, id)
	}
	if len(head.Groups) > 0 {
		slices.Sort(head.Groups)
		decided[f.Head.ID] = head
	}
	return decided, nil
}

// OwnRow ends the id under which a head's own numbers are kept, as its row has those of its family.
const OwnRow = "/own"

// Share is what c adds to the head of its group: all but its samples and
// days, which are only added up when they are read.
func (c *Count) Share() *Count {
	share := *c
	share.Samples, share.Similar, share.Days = nil, Hash{}, nil
	share.Seen, share.Environments, share.Entries.Types = slices.Clone(c.Seen), slices.Clone(c.Environments), slices.Clone(c.Entries.Types)
	return &share
}

// After are the occurrences that happened after an instant.
func After(seen []Seen, since time.Time) (after []Seen) {
	for _, s := range seen {
		s.Times = slices.DeleteFunc(slices.Clone(s.Times), func(at int64) bool { return at <= since.UnixMicro() })
		if len(s.Times) > 0 {
			after = append(after, s)
		}
	}
	return after
}
