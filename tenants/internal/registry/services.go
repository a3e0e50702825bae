package registry

// Services decide about all that the room holds.
type Services struct {
	Organizations *Service
	Projects      *Projects
	Tokens        *Tokens
	Policies      *Policies
	Deletions     *Deletions
}
