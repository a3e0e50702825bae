package grouping

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
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
	URL     string `json:"url"` // a group has one link to each
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
		return Invalid{"url", fmt.Sprintf("The address is %q.", trace.Clip(l.URL, MaxLinkURL)),
			fmt.Sprintf("Use an address that begins with https:// or http://, without a user, of at most %d bytes.", MaxLinkURL)}
	case utf8.RuneCountInString(l.Title) > MaxLinkTitle || !isLine(l.Title):
		return Invalid{"title", fmt.Sprintf("The title is %q.", trace.Clip(l.Title, MaxLinkTitle)),
			fmt.Sprintf("Use one line of at most %d characters.", MaxLinkTitle)}
	}
	return nil
}

// checkLinks returns the first fault of the links that a group is to have, an Invalid.
func checkLinks(links []Link) error {
	if len(links) > MaxLinks {
		return Invalid{"external_links", fmt.Sprintf("There are %d links.", len(links)),
			fmt.Sprintf("A group has at most %d. Leave out those that are not needed.", MaxLinks)}
	}
	for i, link := range links {
		var invalid Invalid
		if errors.As(link.Check(), &invalid) {
			invalid.Field = fmt.Sprintf("external_links/%d/%s", i, invalid.Field)
			return invalid
		}
		if linkAt(links, link.URL) < i {
			return Invalid{fmt.Sprintf("external_links/%d/url", i), "Another link leads there.", "Send each address once."}
		}
	}
	return nil
}

func linkAt(links []Link, url string) int {
	return slices.IndexFunc(links, func(l Link) bool { return l.URL == url })
}

// linked decides that a group has these links, and no others.
func (s State) linked(links []Link) (decided []Decision) {
	for _, link := range s.Links {
		if linkAt(links, link.URL) < 0 {
			decided = append(decided, Decision{Kind: WasUnlinked, Link: link})
		}
	}
	for _, link := range links {
		if !slices.Contains(s.Links, link) {
			decided = append(decided, Decision{Kind: WasLinked, Link: link})
		}
	}
	return decided
}

// link applies a decision about a link.
func (s *State) link(d Decision) {
	at := linkAt(s.Links, d.Link.URL)
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
