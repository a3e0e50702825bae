package frames

// Bounds of the payloads of DATA frames, in bytes.
const (
	tinyData  = 64
	smallData = 1 << 10
	padding   = 256 // at most, with its length
)

// costs of frames other than DATA.
var costs = [...]int64{
	Headers:  16, // begins a handler
	Priority: 8, ResetStream: 8, Settings: 8, PushPromise: 8, Ping: 8, GoAway: 8, Continuation: 8,
	WindowUpdate: 2, // readers send two for each frame of an answer
}

const (
	otherCost   = 8
	bytesOfCost = 256 // of a frame other than DATA
)

// Cost returns what a frame from a client costs the server, in units of
// about a microsecond of a processor. Large DATA frames are free: other
// limits count bytes.
func Cost(h Header) int64 {
	if h.Type == Data {
		return costOfData(h)
	}
	cost := int64(otherCost)
	if int(h.Type) < len(costs) {
		cost = costs[h.Type]
	}
	return cost + int64(h.Length/bytesOfCost)
}

func costOfData(h Header) int64 {
	brings := h.Length
	if h.Flags&flagPadded != 0 {
		brings = max(0, brings-padding)
	}
	switch {
	case brings == 0:
		return otherCost
	case brings < tinyData:
		return otherCost / 2
	case brings < smallData:
		return 1
	}
	return 0
}
