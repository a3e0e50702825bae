package grouping

import (
	"fmt"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of links.
const (
	MaxLinks     = 20   // of a group
	MaxLinkURL   = 2000 // bytes
	MaxLinkTitle = 200  // characters
)

// A Link leads from a group to what other systems know of it, such as a ticket.
type Link struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Title   string `json:"title,omitempty"`
	Webhook string `json:"webhook,omitempty"` // id of the organization's webhook that is told when the group is resolved or comes back; empty: none
}

// IsZero is for no link.
func (l Link) IsZero() bool { return l == Link{} }

// Name is what people call it.
func (l Link) Name() string {
	if l.Title != "" {
		return l.Title
	}
	return l.URL
}

// Check returns the first fault, an Invalid. It does not know the webhooks.
func (l Link) Check() error {
	at, err := url.Parse(l.URL)
	switch {
	case err != nil || len(l.URL) > MaxLinkURL || !isLine(l.URL) || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.User != nil:
		return Invalid{"url", fmt.Sprintf("url is %q.", trace.Clip(l.URL, MaxLinkURL)),
			fmt.Sprintf("Use an address that begins with https:// or http://, without a user, of at most %d bytes.", MaxLinkURL)}
	case utf8.RuneCountInString(l.Title) > MaxLinkTitle || !isLine(l.Title):
		return Invalid{"title", fmt.Sprintf("title is %q.", trace.Clip(l.Title, MaxLinkTitle)), fmt.Sprintf("Use one line of at most %d characters.", MaxLinkTitle)}
	}
	return nil
}

// Link decides that a group has a link. One with this address is replaced, and keeps its id.
func (s State) Link(link Link, version int64, now time.Time) (decided []Decision, err error) {
	if err := link.Check(); err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(s.Links, func(l Link) bool { return l.URL == link.URL }); at >= 0 {
		if link.ID = s.Links[at].ID; link == s.Links[at] {
			return nil, nil
		}
	} else if len(s.Links) >= MaxLinks {
		return nil, Invalid{"url", fmt.Sprintf("The group has %d links, as many as it may.", MaxLinks), "Remove one that is not needed."}
	}
	return s.linked(Decision{Kind: WasLinked, At: now, Link: link}, version)
}

// Unlink decides that a group no longer has a link; what is so already needs no decision.
func (s State) Unlink(id string, version int64, now time.Time) (decided []Decision, err error) {
	at := slices.IndexFunc(s.Links, func(l Link) bool { return l.ID == id })
	if at < 0 {
		return nil, nil
	}
	return s.linked(Decision{Kind: WasUnlinked, At: now, Link: s.Links[at]}, version)
}

func (s State) linked(d Decision, version int64) ([]Decision, error) {
	if version >= MaxDecisions {
		return nil, ErrFull
	}
	return []Decision{d}, nil
}

// link applies a decision about a link.
func (s *State) link(d Decision) {
	at := slices.IndexFunc(s.Links, func(l Link) bool { return l.ID == d.Link.ID })
	links := slices.Clone(s.Links)
	switch {
	case d.Kind == WasUnlinked && at >= 0:
		links = slices.Delete(links, at, at+1)
	case d.Kind == WasLinked && at >= 0:
		links[at] = d.Link
	case d.Kind == WasLinked:
		links = append(links, d.Link)
	}
	s.Links = links
}

// TellsLinks reports whether the webhooks of a group's links are told of a decision.
func (k Kind) TellsLinks() bool { return k == WasResolved || k == WasReopened || k == WasRegressed }
