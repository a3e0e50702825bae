package admission

// makeRoom ends bodies of the holders with most until enough
// comes back for a claim.
func (p *Pool) makeRoom(c *claim) {
	missing := p.held + c.bytes - p.limits.Bytes - p.comingBack()
	stuck := p.stuck()
	for missing > 0 {
		victim := p.victim(c, stuck)
		if victim == nil {
			break
		}
		missing -= victim.bytes
		p.takeAway(victim)
	}
	if missing > 0 && stuck {
		p.refuseYoungest(nil)
	}
}

// comingBack is what ended bodies still hold.
func (p *Pool) comingBack() (bytes int64) {
	for _, h := range p.holders {
		bytes += h.comingBack()
	}
	return bytes
}

func (h *holder) comingBack() (bytes int64) {
	for _, l := range h.leases {
		if l.Over() {
			bytes += l.bytes
		}
	}
	return bytes
}

// stuck reports whether nothing will come back: all wait for each other.
func (p *Pool) stuck() bool {
	for _, h := range p.holders {
		if !h.stuck() {
			return false
		}
	}
	return true
}

func (h *holder) stuck() bool {
	for _, l := range h.leases {
		if l.claim == nil {
			return false
		}
	}
	return true
}

// victim is the slowest body of the holder with most, if that
// holds more than the claim's holder would.
func (p *Pool) victim(c *claim, stuck bool) (slowest *Lease) {
	most, now := c.lease.of.held+c.bytes, p.clock()
	var greedy *holder
	for _, h := range p.holders {
		if left := h.held - h.comingBack(); left > most && h != c.lease.of {
			greedy, most = h, left
		}
	}
	if greedy == nil {
		return nil
	}
	for _, l := range greedy.leases {
		if l.end == nil || l.Over() || !stuck && now.Sub(l.began) < p.limits.Grace {
			continue
		}
		if slowest == nil || l.pace(now) < slowest.pace(now) {
			slowest = l
		}
	}
	return slowest
}

func (p *Pool) takeAway(l *Lease) {
	l.over.Store(true)
	if l.claim != nil {
		p.decide(l.claim, ErrTakenAway)
		return
	}
	l.end()
}

// refuseYoungest breaks a deadlock of claims: those of one
// holder, or of all where it is nil.
func (p *Pool) refuseYoungest(of *holder) {
	var youngest *claim
	for _, c := range p.waiting {
		if (of == nil || c.lease.of == of) && (youngest == nil || !c.lease.began.Before(youngest.lease.began)) {
			youngest = c
		}
	}
	p.decide(youngest, ErrPoolFull)
}
