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
	for _, l := range h.loans {
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
	for _, l := range h.loans {
		if l.claim == nil {
			return false
		}
	}
	return true
}

// victim is the slowest body of the holder with most, if that
// holds more than the claim's holder would.
func (p *Pool) victim(c *claim, stuck bool) (slowest *Loan) {
	most, now := c.loan.of.held+c.bytes, p.clock()
	var greedy *holder
	for _, h := range p.holders {
		if left := h.held - h.comingBack(); left > most && h != c.loan.of {
			greedy, most = h, left
		}
	}
	if greedy == nil {
		return nil
	}
	for _, l := range greedy.loans {
		if l.end == nil || l.Over() || !stuck && now.Sub(l.began) < p.limits.Grace {
			continue
		}
		if slowest == nil || l.pace(now) < slowest.pace(now) {
			slowest = l
		}
	}
	return slowest
}

func (p *Pool) takeAway(l *Loan) {
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
		if (of == nil || c.loan.of == of) && (youngest == nil || !c.loan.began.Before(youngest.loan.began)) {
			youngest = c
		}
	}
	p.decide(youngest, ErrPoolFull)
}
