package ingest

// shareDivisor makes a replica's share of what is left a quarter of an
// even one. Of R bytes that are left all shares are R/4, and when only
// they are uncounted, at least R/2 is left: so uncounted bytes stay below
// half of what is left while the ledger counts requests in their order.
const shareDivisor = 4

// Replicas is how many replicas admit requests, this one included; at
// most 1: it is alone.
type Replicas int

// overShare reports whether bytes more are beyond a replica's share of
// what the ledger has left: others may have used up the rest. A first
// uncounted request needs no share, or a large one would never pass.
func (n Replicas) overShare(left, uncounted, bytes int64) bool {
	return n > 1 && uncounted > 0 && uncounted+bytes > left/(shareDivisor*int64(n))
}

// Divide sets how many replicas admit requests by the budgets.
func (b *Budgets) Divide(replicas Replicas) {
	b.replicas = replicas
	for _, quota := range b.bySpender {
		quota.Replicas = replicas
	}
}
