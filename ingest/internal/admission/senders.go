package admission

import (
	"container/heap"
	"container/list"
)

// senders are organizations by the number of their attempts.
type senders struct {
	byOrganization map[string]*sender // bounded by the attempts
	most           senderHeap
}

// A sender is an organization with its attempts, in the order in which they began.
type sender struct {
	organization string
	attempts     list.List
	place        int // in the heap
}

func newSenders() senders { return senders{byOrganization: map[string]*sender{}} }

func (h *senders) add(organization string, attempt *Attempt) {
	of := h.byOrganization[organization]
	if of == nil {
		of = &sender{organization: organization}
		h.byOrganization[organization] = of
		heap.Push(&h.most, of)
	}
	attempt.sender, attempt.holding = of, of.attempts.PushBack(attempt)
	heap.Fix(&h.most, of.place)
}

func (h *senders) remove(attempt *Attempt) {
	of := attempt.sender
	if of.attempts.Remove(attempt.holding); of.attempts.Len() > 0 {
		heap.Fix(&h.most, of.place)
		return
	}
	heap.Remove(&h.most, of.place)
	delete(h.byOrganization, of.organization)
}

// oldest returns the oldest attempt of the largest sender. There must be one.
func (h *senders) oldest() *Attempt { return h.most[0].attempts.Front().Value.(*Attempt) }

// A senderHeap has the largest sender first.
type senderHeap []*sender

// Len implements heap.Interface.
func (h senderHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h senderHeap) Less(i, j int) bool { return h[i].attempts.Len() > h[j].attempts.Len() }

// Swap implements heap.Interface.
func (h senderHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *senderHeap) Push(added any) {
	of := added.(*sender)
	of.place = len(*h)
	*h = append(*h, of)
}

// Pop implements heap.Interface.
func (h *senderHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}
