package weir

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// HandlerOptions are of a [slog.Handler].
type HandlerOptions struct {
	Level slog.Leveler // the lowest that is sent; default info

	// WithContext returns metadata of a call's context, such as trace_id.
	WithContext func(context.Context) map[string]any

	// Redact may replace the value of an attribute before it is encoded, as
	// ReplaceAttr of slog does; an empty [slog.Attr] omits it. The message
	// comes as slog.MessageKey. It is also called for attributes that are not
	// groups within groups.
	Redact func(groups []string, a slog.Attr) slog.Attr
}

// NewHandler returns a handler that sends by c. Attributes become metadata,
// groups objects in it. The first error under the key "error" or "err" becomes
// the entry's error, with its stack: the frames that the error has itself or,
// from level error on, those of the call.
func NewHandler(c *Client, options HandlerOptions) slog.Handler {
	if options.Level == nil {
		options.Level = slog.LevelInfo
	}
	return &handler{client: c, options: options}
}

type handler struct {
	client  *Client
	options HandlerOptions
	prefix  []byte   // encoded attributes, with the groups that they are in
	open    int      // groups that prefix leaves open
	groups  []string // all
	fault   error    // of attributes
}

// sending marks the contexts of a client's own requests.
type sending struct{}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.options.Level.Level() && ctx.Value(sending{}) == nil
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Value(sending{}) != nil {
		return nil
	}
	e := h.encoder()
	defer e.free()
	level := levelOf(r.Level)
	h.head(e, level, r)
	h.metadata(ctx, e, r)
	if e.fault != nil {
		var frames [maxFrames]uintptr
		var pcs []uintptr
		if level >= levelError {
			pcs = callers(frames[:], r.PC)
		}
		e.faultOf(e.fault, pcs)
	}
	h.client.push(level, e, h.client.tail)
	return nil
}

func (h *handler) encoder() *encoder {
	e := encoders.Get().(*encoder)
	e.redact, e.fault = h.options.Redact, h.fault
	return e
}

func (h *handler) head(e *encoder, level int, r slog.Record) {
	message := r.Message
	if e.redact != nil {
		message = e.redact(nil, slog.String(slog.MessageKey, message)).Value.Resolve().String()
	}
	at := r.Time
	if at.IsZero() {
		at = time.Now()
	}
	e.buf = appendHead(e.buf, at, level, message)
}

func (h *handler) metadata(ctx context.Context, e *encoder, r slog.Record) {
	before := len(e.buf)
	e.buf = append(e.buf, `,"metadata":{`...)
	if h.options.WithContext != nil {
		e.values(h.options.WithContext(ctx))
	}
	if len(h.prefix) > 0 {
		if e.buf[len(e.buf)-1] != '{' {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, h.prefix...)
	}
	if e.redact != nil {
		e.groups = append(e.groups[:0], h.groups[:h.open]...)
	}
	if r.NumAttrs() > 0 {
		h.own(e, h.groups[h.open:], r)
	}
	for range h.open {
		e.buf = append(e.buf, '}')
	}
	if e.buf[len(e.buf)-1] == '{' {
		e.buf = e.buf[:before]
	} else {
		e.buf = append(e.buf, '}')
	}
}

// own writes the attributes of a record in groups that are not open yet.
func (h *handler) own(e *encoder, groups []string, r slog.Record) {
	if len(groups) > 0 {
		e.inside(groups[0], func() { h.own(e, groups[1:], r) })
		return
	}
	r.Attrs(func(a slog.Attr) bool {
		e.attr(a)
		return true
	})
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	e := h.encoder()
	defer e.free()
	e.buf = append(append(e.buf, '{'), h.prefix...)
	if e.redact != nil {
		e.groups = append(e.groups[:0], h.groups[:h.open]...)
	}
	for _, group := range h.groups[h.open:] {
		e.open(group)
	}
	before := len(e.buf)
	e.attrs(attrs)
	next := *h
	next.fault = e.fault
	if len(e.buf) > before {
		next.prefix, next.open = slices.Clone(e.buf[1:]), len(h.groups)
	}
	return &next
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.groups = append(slices.Clip(h.groups), name)
	return &next
}
