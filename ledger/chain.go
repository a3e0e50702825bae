package ledger

import (
	"fmt"
	"time"
)

// A Head is the end of an organization's chain.
type Head struct {
	Sequence int64 // of its last link; 0: it has none
	Hash     Hash  // of that link
}

// CheckLinks checks each link of an organization against the one
// before, and the last against the chain's head. Links before the first may be gone.
func CheckLinks(links []Link, head Link) (violations []Violation) {
	broken := func(l Link, what string) {
		violations = append(violations, Violation{Invariant: ChainHolds, Detail: fmt.Sprintf("organization %q, link %d of %s: %s",
			l.Organization, l.Sequence, l.Hour.Format(time.RFC3339), what)})
	}
	for i, link := range links {
		if link.Sealed().Hash != link.Hash {
			broken(link, "its hash is not that of its content")
		}
		if link.Sequence == 1 && link.Previous != (Hash{}) {
			broken(link, "it is the first, and follows another")
		}
		if i > 0 && (link.Sequence != links[i-1].Sequence+1 || link.Previous != links[i-1].Hash || !link.Hour.After(links[i-1].Hour)) {
			broken(link, fmt.Sprintf("it does not follow link %d", links[i-1].Sequence))
		}
	}
	if len(links) > 0 {
		if last := links[len(links)-1]; last.Sequence != head.Sequence || last.Hash != head.Hash ||
			last.Decisions != head.Decisions || !last.Hour.Equal(head.Hour) {
			broken(last, fmt.Sprintf("it is the last, with %d decisions, and the head of the chain is link %d of %s with the hash %x and %d decisions",
				last.Decisions, head.Sequence, head.Hour.Format(time.RFC3339), head.Hash, head.Decisions))
		}
	}
	return violations
}
