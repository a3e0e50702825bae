package group

import (
	"slices"
	"time"
)

// A Protocol is a way to assign partitions that a member knows.
type Protocol struct {
	Name     string
	Metadata []byte
}

// A member of a group.
type member struct {
	id, clientID, host string
	session, rebalance time.Duration
	protocols          []Protocol
	assignment         []byte
	number             int // in the order of joining

	joining chan JoinAnswer // nil: not waiting
	syncing chan SyncAnswer // nil: not waiting
	expiry  *time.Timer
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

func (m *member) knows(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == protocol })
}

func sameProtocols(a, b []Protocol) bool {
	return slices.EqualFunc(a, b, func(a, b Protocol) bool { return a.Name == b.Name && slices.Equal(a.Metadata, b.Metadata) })
}

// touch gives the member another session.
func (g *group) touch(m *member) {
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.expiry = time.AfterFunc(m.session, func() {
		g.c.mu.Lock()
		defer g.c.mu.Unlock()
		g.expire(m)
	})
}

// expire removes a member whose session is over. One that waits for the
// others is silent with reason.
func (g *group) expire(m *member) {
	if g.members[m.id] != m {
		return
	}
	if m.joining != nil || m.syncing != nil {
		g.touch(m)
		return
	}
	g.remove(m)
}

// remove ends a membership; the others share its partitions.
func (g *group) remove(m *member) {
	delete(g.members, m.id)
	if m.expiry != nil {
		m.expiry.Stop()
	}
	m.answerJoin(JoinAnswer{Err: errUnknownMember})
	m.answerSync(SyncAnswer{Err: errUnknownMember})
	switch g.state {
	case completing, stable:
		g.prepare()
	case preparing:
		g.completeJoin(false)
	case empty:
		g.c.tidy(g)
	}
}

func (m *member) answerJoin(a JoinAnswer) {
	if m.joining != nil {
		m.joining <- a
		m.joining = nil
	}
}

func (m *member) answerSync(a SyncAnswer) {
	if m.syncing != nil {
		m.syncing <- a
		m.syncing = nil
	}
}
