package admission

// makeRoom evicts bodies of the largest holders until enough is
// releasing for a claim.
func (p *Pool) makeRoom(c *claim) {
	missing := p.held + c.bytes - p.limits.Bytes - p.releasing()
	deadlocked := p.deadlocked()
	for missing > 0 {
		victim := p.victim(c, deadlocked)
		if victim == nil {
			break
		}
		missing -= victim.bytes
		p.evict(victim)
	}
	if missing > 0 && deadlocked {
		p.refuseYoungest(nil)
	}
}

// releasing returns what evicted bodies still hold.
func (p *Pool) releasing() (bytes int64) {
	for _, h := range p.holders {
		bytes += h.releasing()
	}
	return bytes
}

func (h *holder) releasing() (bytes int64) {
	for _, l := range h.leases {
		if l.Over() {
			bytes += l.bytes
		}
	}
	return bytes
}

// deadlocked reports whether nothing will be released: all wait for each other.
func (p *Pool) deadlocked() bool {
	for _, h := range p.holders {
		if !h.deadlocked() {
			return false
		}
	}
	return true
}

func (h *holder) deadlocked() bool {
	for _, l := range h.leases {
		if l.claim == nil {
			return false
		}
	}
	return true
}

// victim returns the slowest body of the largest holder, if that holds
// more than the claim's holder would.
func (p *Pool) victim(c *claim, deadlocked bool) (slowest *Lease) {
	most, now := c.lease.of.held+c.bytes, p.clock()
	var greedy *holder
	for _, h := range p.holders {
		if left := h.held - h.releasing(); left > most && h != c.lease.of {
			greedy, most = h, left
		}
	}
	if greedy == nil {
		return nil
	}
	for _, l := range greedy.leases {
		if l.end == nil || l.Over() || !deadlocked && now.Sub(l.began) < p.limits.Grace {
			continue
		}
		if slowest == nil || l.pace(now) < slowest.pace(now) {
			slowest = l
		}
	}
	return slowest
}

func (p *Pool) evict(l *Lease) {
	l.over.Store(true)
	if l.claim != nil {
		p.decide(l.claim, ErrTakenAway)
		return
	}
	l.end()
}

// refuseYoungest refuses the youngest claim in a deadlock of one
// holder's claims, or of all for nil.
func (p *Pool) refuseYoungest(of *holder) {
	var youngest *claim
	for _, c := range p.waiting {
		if (of == nil || c.lease.of == of) && (youngest == nil || !c.lease.began.Before(youngest.lease.began)) {
			youngest = c
		}
	}
	p.decide(youngest, ErrPoolFull)
}
