package tenants

// A Reduction adds up the lines reduced by a deletion, in order.
type Reduction struct {
	Lines int64
	sum   string
}

// Add adds a line's hash and what is left of it.
func (r *Reduction) Add(line AuditEvent) {
	r.Lines, r.sum = r.Lines+1, line.hash(r.Hash()+line.Hash)
}

// Hash is a SHA-256 of all added lines.
func (r *Reduction) Hash() string {
	if r.sum == "" {
		return AuditStart
	}
	return r.sum
}
