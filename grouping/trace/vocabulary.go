package trace

// vocabulary holds words of error messages: grammar,
// failures, and the things of computing that fail. Words
// are part of hashes: a change needs a new Version.
var vocabulary = wordSet(`
a able abort aborted aborting about above absent accept accepted accepting access accessed accessible account acquire
acquired across action active actual add added adding address after again against alias alive all alloc allocate
allocated allocating allocation allow allowed along already also am ambiguous an and another any append application
apply are argument arguments around array as assert assertion assign assigned assignment associated async at attempt
attempted attempting attempts attribute attributes auth authenticate authenticated authentication authorization
authorized available await awaiting bad base batch be because been before begin beginning being belong belongs below
between binary bind binding bit bits blank block blocked blocks body boolean both bound bounds branch break broken
broker buffer bug build builder busy but by byte bytes cache cached call callback called caller calling can cancel
canceled cancelled cancelling cannot canonical capacity cast casting catalog caught cause caused certificate chain
change changed changing channel character characters charset check checked checking checkpoint checksum child
children chunk circular class classes classpath cleanup clear client clone close closed closing cluster code codec
collection column columns command comment commit committed common communication compare compatible compile complete
completed component compress compressed compression computed condition config configuration configure configured
conflict conflicting connect connected connecting connection connections constant constraint construct constructor
consume consumer contain container containing contains content context contract conversion convert converted cookie
copy correct corrupt corrupted corruption could count counter crash create created creating creation credential
credentials critical currency current cursor custom cycle cyclic daemon data database date day dead deadline deadlock
declaration declare declared decode decoded decoding decompress decrypt decryption default defined definition
delegate delete deleted deleting delimiter denied dependencies dependency deprecated depth dereference descriptor
deserialization deserialize destination destroyed detail details detected determine device dictionary did die died
differ different digest digit dimension direct directory disabled disallowed disconnect disconnected disk dispatch
dispatched dispatcher division dns do document does doing domain done double down download driver drop dropped due
dump duplicate duplicated duration during each early edit either element elements else empty enable enabled encode
encoded encoding encountered encrypt encryption end ended ending endpoint engine enough enter entity entries entry
enum environment eof equal equals err error errors escape escaped establish established evaluate evaluating
evaluation event events every exact exceed exceeded exceeds except exception exceptions execute executed executing
execution executor exhausted exist existing exists exit exited exiting expect expected expiration expire expired
export expression extend extends extension external extra extract fail failed failing fails failure failures false
fatal fault feature fetch fetched fetching few field fields file filename files filesystem fill filter final find
finish finished first fit fixed flag float flush flushing folder follower following for forbidden forced foreign fork
form format formatted former forward found fragment frame free from full function future gateway general generate
generated generating generator generic get getting give given global got granted group guard had halt handle handled
handler handling handshake has hash have having he head header headers heap height held help here hidden hit hold
holding hook host hostname hosts how http https i id identifier identity idle if ignore ignored illegal image
immutable implement implementation implemented import important impossible improper in included including
incompatible incomplete incorrect index indexes info information inherit init initial initialization initialize
initialized initializing inner input insert inserted insertion inside instance instances instantiate instantiated
instantiation instead insufficient int integer integrity interface internal interrupt interrupted interval into
invalid invocation invoke invoked invoking io ip is issue it item items iterator its jar job jobs join json just keep
key keys kill killed kind known label language large larger last latest layer layout leader leak lease least left
length less level library license limit limits line link list listen listener load loaded loader loading local locale
locate location lock locked log logged logger login logout long longer longest lookup loop lost low lower magic main
make malformed manager manifest many map mapped mapping marked mask master match matched matches matching max maximum
may maybe mean media member memory merge merging message messages metadata method methods middleware might migration
min minimum mismatch misses missing mkdir mode model modification modified modify module more most mount move moved
much multiple must mutable mutex my name named names namespace native near need needed needs negative neither nested
network never new next nil no nobody node nodes non none nor not nothing null nullable number numbers numeric object
objects obsolete obtain occur occurred of off offline offset ok old on once only onto open opened opening operand
operation operations operator option optional options or order original other our out outside over overflow overlap
override owned owner ownership pack package packet page pages pair panic param parameter parameters parent parse
parsed parser parsing part partial partition partitions passed password past patch path pattern payload peer pending
per perform performed period permission permissions permitted persist persistent phase pid ping pipe pipeline place
plan platform please plugin point pointer policy poll polling pool port position positive possible post precision
prefix premature prepare prepared preparing present previous previously primary primitive privilege privileges
problem procedure process processed processes processing processor produce producer profile program progress
prohibited project promise prop properties property protected protocol provide provided provider proxy public publish
put query queue quit quorum quota quote race raise raised random range rate raw reach reached read readable reader
reading readonly ready really reason receive received receiver receiving recipient recognized reconnect record
records recover recovered recovery recursion recursive redirect redirected reduce reducer ref refer reference
referenced refresh refused regex region register registered registration registry regular reject rejected related
relation release released reload remain remaining remote removal remove removed removing rename renamed render
rendering repeat replace replaced replica replicas replicate replicated replication reply report reported repository
represent request requested requests require required requires reserved reset resize resolution resolve resolved
resolver resource resources respond responding response responses restart restarted restore restricted result results
resume retried retries retrieve retrieved retry return returned returning returns revision revoked right role roll
rollback root route router row rows rule run runnable running runtime safe same sample save saved scale scan schedule
scheduled scheduler schema scheme scope script search second section security see seek segment select selected self
semaphore send sender sending sent separator sequence serial serialization serialize serialized server service
services session set sets setting settings setup several shall shape shard share shared she short should shut
shutdown shutting side sign signal signature signed simple since single site size skip skipped slave sleep slot slow
small snapshot so socket soft solution some sort source space spec specific specified specify split sql ssl stack
stage stale standard start started starting starts startup state statement states static statistics status step still
stop stopped stopping storage store stored storing stream streams string strings struct structure style sub subject
submit submitted subscribe subscriber subscription success successful successfully such suffix suitable super support
supported supports suspend suspended switch symbol synchronize synchronized syntax system table tables tag take taken
taking target task tasks template temporary tenant terminate terminated terminating termination test text than that
the their them then there these they third this those thread threads threshold throttled through throw thrown throws
tick ticket time timed timeout timeouts timer timestamp timezone timing tls to token tokens too topic total toward
towards trace track trailing transaction transfer transform transient transition translate transmit transport
traverse tree tried trigger true truncate truncated trust trusted try trying tuple turn twice type types unable
unauthenticated unauthorized unavailable unbound undefined under underflow unexpected unexpectedly unhandled unicode
uninitialized union unique unit unknown unless unlock unmarshal unpack unparseable unreachable unreadable
unrecognized unregistered unresolved unsafe unset unsigned unsupported unterminated until unused up update updated
updating upgrade upload upon upper uri url usable usage use used user users uses using utf valid validate validated
validation validator value values variable vector verification verified verify version versions via view violated
violates violation virtual visible void volume wait waited waiting want warn warning was way we web well went were
what when where which while who whom whose why width will window wire with within without word words work worker
workers working would wrap wrapped wrapper writable write writer writing written wrong xml yaml year yet yield you
your zero zip zone`)
