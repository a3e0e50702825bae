package words

// BeamLibraries are applications of Elixir and Erlang.
const BeamLibraries = `elixir stdlib kernel phoenix plug plug_cowboy cowboy ranch ecto ecto_sql db_connection postgrex logger
mix ex_unit absinthe bandit thousand_island phoenix_live_view oban broadway gen_stage jason finch mint req tesla hackney erts
gen_server proc_lib lists gen supervisor`

// PageWords are names of scripts whose letters no error message has.
const PageWords = `analytics basket bootstrap browse calendar carousel catalogue chart checkout customer dashboard editor
explore footer gallery header homepage invoice landing layout login marketing navigation nav onboarding payment polyfills
pricing product settings sidebar signup subscription toolbar vendors webpack widget wishlist`

// MemoryFaults are what sanitizers, systems and languages call misused memory.
const MemoryFaults = `SEGV SIGSEGV SIGBUS KERN_INVALID_ADDRESS KERN_PROTECTION_FAILURE EXC_BAD_ACCESS ACCESS_VIOLATION
EXCEPTION_ACCESS_VIOLATION STATUS_ACCESS_VIOLATION EAccessViolation AccessViolationException 0xc0000005 0xC0000005
alloc-dealloc-mismatch bad-free calloc-overflow container-overflow double-free dynamic-stack-buffer-overflow
global-buffer-overflow heap-buffer-overflow heap-use-after-free intra-object-overflow invalid-pointer-pair
memcpy-param-overlap negative-size-param stack-buffer-overflow stack-buffer-underflow stack-use-after-return
stack-use-after-scope strcat-param-overlap strcpy-param-overlap strncpy-param-overlap unknown-crash use-after-poison
use-of-uninitialized-value wild-access`

// Faults are types of mistakes of the function that throws them.
const Faults = `ArithmeticException ArrayStoreException ConcurrentModificationException IllegalMonitorStateException
NegativeArraySizeException StackOverflowError UnsupportedOperationException UninitializedPropertyAccessException MatchError
TypeError ReferenceError AttributeError NameError UnboundLocalError ZeroDivisionError RecursionError NotImplementedError
NoMethodError FrozenError UncaughtThrowError NilClass NullReferenceException InvalidCastException DivideByZeroException
ArrayTypeMismatchException NotImplementedException UndefinedMethodError ArgumentCountError DivisionByZeroError`

// GoStandard are the first elements of the standard library's import paths.
const GoStandard = `archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag
fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv
strings structs sync syscall testing text time unicode unique unsafe weak`

// JavaLibraries are beginnings of packages.
const JavaLibraries = `Microsoft Mono System Xamarin android androidx akka antlr clojure com.amazonaws com.android
com.datastax com.fasterxml com.github.benmanes com.google com.ibm com.intellij com.microsoft com.mongodb com.mysql com.netflix
com.oracle com.rabbitmq com.squareup com.sun com.zaxxer dalvik feign freemarker graphql groovy io.dropwizard io.grpc io.ktor
io.lettuce io.micrometer io.micronaut io.netty io.opentelemetry io.projectreactor io.quarkus io.reactivex io.undertow io.vertx
jakarta java javax jdk junit kotlin kotlinx liquibase net.bytebuddy net.sf.cglib net.sf.ehcache okhttp3 okio oracle org.antlr
org.aopalliance org.apache.axis org.apache.catalina org.apache.commons org.apache.coyote org.apache.cxf org.apache.derby
org.apache.felix org.apache.http org.apache.ibatis org.apache.jasper org.apache.karaf org.apache.log4j org.apache.logging
org.apache.maven org.apache.naming org.apache.shiro org.apache.thrift org.apache.tomcat org.apache.tools org.apache.xbean
org.apache.xerces org.apache.xalan org.aspectj org.codehaus org.datanucleus org.eclipse org.flywaydb org.glassfish org.gradle
org.hibernate org.jboss org.jetbrains org.joda org.jruby org.junit org.mockito org.mortbay org.mozilla org.objectweb org.osgi
org.postgresql org.quartz org.reactivestreams org.slf4j org.springframework org.testng org.thymeleaf org.xml org.xnio org.yaml
play reactor redis.clients retrofit2 rx sbt scala software.amazon sun sunw ch.qos zio cats monix slick`

// PlacedWords are words around calls.
const PlacedWords = `at in from by of on to file line column char character characters function func fn def proc procedure sub
method block lambda call called calls caller module script raised Raised re-raised Re-raised Called Call Caller At In From
File Line Function Script Module`

// RustCrates are libraries that most programs use. Paths exclude others, where the program has
// debug information.
const RustCrates = `core std alloc test proc_macro __rustc actix_http actix_rt actix_server actix_service actix_web addr2line
anyhow async_std axum axum_core backtrace bevy_app bevy_ecs bevy_tasks bytes chrono clap clap_builder color_eyre crossbeam
crossbeam_utils diesel env_logger eyre futures futures_core futures_executor futures_util gimli h2 hashbrown http hyper
hyper_util indexmap js_sys libc log mio once_cell parking_lot parking_lot_core pyo3 rayon rayon_core redis regex
regex_automata reqwest rocket rustls sentry serde serde_json serde_yaml smol sqlx sqlx_core tauri thiserror time tokio
tokio_postgres tokio_stream tokio_util toml tonic tower tower_http tower_service tracing tracing_core tracing_subscriber url
uuid warp wasm_bindgen wasm_bindgen_futures web_sys wgpu wgpu_core winit`

// NativeImages are beginnings of names of libraries.
const NativeImages = `libc. libc- libc++ libstdc++ libpthread libm. ld-linux libsystem_ libdispatch libobjc libswift dyld
UIKit Foundation CFNetwork CoreData CoreFoundation AppKit AttributeGraph Combine JavaScriptCore SwiftUI GraphicsServices
QuartzCore WebCore WebKit XCTest libart. libandroid libgcc linux-vdso libasan libubsan libtsan vgpreload_ ntdll KERNEL32
KERNELBASE ucrtbase VCRUNTIME`

// NativeFunctions are beginnings of functions below every program's own.
const NativeFunctions = `__asan __ubsan __msan __tsan __lsan __sanitizer __interceptor __libc_ __cxa_ __GI_ __stack_chk
__scrt_ __pthread_ std:: _ZNSt _ZNKSt _ZSt fuzzer:: swift_ _swift_ $ss17_assertionFailure objc_ _assertionFailure folly::
kfun:kotlin. backward:: node:: v8:: art::`

// NativeLibc are functions of the standard library that sanitizers replace, which are printed as if
// the program had them, and those that begin threads.
const NativeLibc = `calloc free malloc memchr memcmp memcpy memmove memset pthread_create read realloc realpath strcat strchr
strcmp strcpy strdup strlen strncat strncmp strncpy strtol vsnprintf write _start start clone clone3 start_thread thread_start
RtlUserThreadStart BaseThreadInitThunk invoke_main ret_from_fork ret_from_fork_asm kthread`

// NativeReporters are functions by which errors are raised and reported. They are the same for all
// errors, and no calls that failed.
const NativeReporters = `abort raise gsignal kill tgkill pthread_kill terminate die panic BUG backtrace print_backtrace
dump_stack dump_stack_lvl show_stack __warn report_bug oops_end page_fault_oops exc_page_fault asm_exc_page_fault
exc_invalid_op asm_exc_invalid_op handle_bug kasan_report print_report __die_body __might_sleep exc_general_protection
asm_exc_general_protection __assert __assert_fail __assert_fail_base __assert_rtn __assert2 __assert_perror_fail
__GI___assert_fail _assert _wassert __abort_msg abort_message __android_log_assert __libc_message malloc_printerr
__fortify_fail __chk_fail g_log g_logv g_assertion_message g_assertion_message_expr _g_log_abort qAbort qFatal
qt_message_fatal qt_assert qt_assert_x RaiseException RtlRaiseException UnhandledExceptionFilter _CxxThrowException
__exceptionPreprocess rust_panic rust_begin_unwind demangling_terminate_handler V8_Fatal V8_Dcheck fatalError panicImpl`

// Vocabulary are words of error messages: grammar, failures, and the things of computing that fail.
// Words are part of hashes: a change needs a new Version.
const Vocabulary = `a able abort aborted aborting about above absent accept accepted accepting access accessed accessible
account acquire acquired across action active actual add added adding address after again against alias alive all alloc
allocate allocated allocating allocation allow allowed along already also am ambiguous an and another any append application
apply are argument arguments around array as assert assertion assign assigned assignment associated async at attempt attempted
attempting attempts attribute attributes auth authenticate authenticated authentication authorization authorized available
await awaiting bad base batch be because been before begin beginning being belong belongs below between binary bind binding
bit bits blank block blocked blocks body boolean both bound bounds branch break broken broker buffer bug build builder busy
but by byte bytes cache cached call callback called caller calling can cancel canceled cancelled cancelling cannot canonical
capacity cast casting catalog caught cause caused certificate chain change changed changing channel character characters
charset check checked checking checkpoint checksum child children chunk circular class classes classpath cleanup clear client
clone close closed closing cluster code codec collection column columns command comment commit committed common communication
compare compatible compile complete completed component compress compressed compression computed condition config
configuration configure configured conflict conflicting connect connected connecting connection connections constant
constraint construct constructor consume consumer contain container containing contains content context contract conversion
convert converted cookie copy correct corrupt corrupted corruption could count counter crash create created creating creation
credential credentials critical currency current cursor custom cycle cyclic daemon data database date day dead deadline
deadlock declaration declare declared decode decoded decoding decompress decrypt decryption default defined definition
delegate delete deleted deleting delimiter denied dependencies dependency deprecated depth dereference descriptor
deserialization deserialize destination destroyed detail details detected determine device dictionary did die died differ
different digest digit dimension direct directory disabled disallowed disconnect disconnected disk dispatch dispatched
dispatcher division dns do document does doing domain done double down download driver drop dropped due dump duplicate
duplicated duration during each early edit either element elements else empty enable enabled encode encoded encoding
encountered encrypt encryption end ended ending endpoint engine enough enter entity entries entry enum environment eof equal
equals err error errors escape escaped establish established evaluate evaluating evaluation event events every exact exceed
exceeded exceeds except exception exceptions execute executed executing execution executor exhausted exist existing exists
exit exited exiting expect expected expiration expire expired export expression extend extends extension external extra
extract fail failed failing fails failure failures false fatal fault feature fetch fetched fetching few field fields file
filename files filesystem fill filter final find finish finished first fit fixed flag float flush flushing folder follower
following for forbidden forced foreign fork form format formatted former forward found fragment frame free from full function
future gateway general generate generated generating generator generic get getting give given global got granted group guard
had halt handle handled handler handling handshake has hash have having he head header headers heap height held help here
hidden hit hold holding hook host hostname hosts how http https i id identifier identity idle if ignore ignored illegal image
immutable implement implementation implemented import important impossible improper in included including incompatible
incomplete incorrect index indexes info information inherit init initial initialization initialize initialized initializing
inner input insert inserted insertion inside instance instances instantiate instantiated instantiation instead insufficient
int integer integrity interface internal interrupt interrupted interval into invalid invocation invoke invoked invoking io ip
is issue it item items iterator its jar job jobs join json just keep key keys kill killed kind known label language large
larger last latest layer layout leader leak lease least left length less level library license limit limits line link list
listen listener load loaded loader loading local locale locate location lock locked log logged logger login logout long longer
longest lookup loop lost low lower magic main make malformed manager manifest many map mapped mapping marked mask master match
matched matches matching max maximum may maybe mean media member memory merge merging message messages metadata method methods
middleware might migration min minimum mismatch misses missing mkdir mode model modification modified modify module more most
mount move moved much multiple must mutable mutex my name named names namespace native near need needed needs negative neither
nested network never new next nil no nobody node nodes non none nor not nothing null nullable number numbers numeric object
objects obsolete obtain occur occurred of off offline offset ok old on once only onto open opened opening operand operation
operations operator option optional options or order original other our out outside over overflow overlap override owned owner
ownership pack package packet page pages pair panic param parameter parameters parent parse parsed parser parsing part partial
partition partitions passed password past patch path pattern payload peer pending per perform performed period permission
permissions permitted persist persistent phase pid ping pipe pipeline place plan platform please plugin point pointer policy
poll polling pool port position positive possible post precision prefix premature prepare prepared preparing present previous
previously primary primitive privilege privileges problem procedure process processed processes processing processor produce
producer profile program progress prohibited project promise prop properties property protected protocol provide provided
provider proxy public publish put query queue quit quorum quota quote race raise raised random range rate raw reach reached
read readable reader reading readonly ready really reason receive received receiver receiving recipient recognized reconnect
record records recover recovered recovery recursion recursive redirect redirected reduce reducer ref refer reference
referenced refresh refused regex region register registered registration registry regular reject rejected related relation
release released reload remain remaining remote removal remove removed removing rename renamed render rendering repeat replace
replaced replica replicas replicate replicated replication reply report reported repository represent request requested
requests require required requires reserved reset resize resolution resolve resolved resolver resource resources respond
responding response responses restart restarted restore restricted result results resume retried retries retrieve retrieved
retry return returned returning returns revision revoked right role roll rollback root route router row rows rule run runnable
running runtime safe same sample save saved scale scan schedule scheduled scheduler schema scheme scope script search second
section security see seek segment select selected self semaphore send sender sending sent separator sequence serial
serialization serialize serialized server service services session set sets setting settings setup several shall shape shard
share shared she short should shut shutdown shutting side sign signal signature signed simple since single site size skip
skipped slave sleep slot slow small snapshot so socket soft solution some sort source space spec specific specified specify
split sql ssl stack stage stale standard start started starting starts startup state statement states static statistics status
step still stop stopped stopping storage store stored storing stream streams string strings struct structure style sub subject
submit submitted subscribe subscriber subscription success successful successfully such suffix suitable super support
supported supports suspend suspended switch symbol synchronize synchronized syntax system table tables tag take taken taking
target task tasks template temporary tenant terminate terminated terminating termination test text than that the their them
then there these they third this those thread threads threshold throttled through throw thrown throws tick ticket time timed
timeout timeouts timer timestamp timezone timing tls to token tokens too topic total toward towards trace track trailing
transaction transfer transform transient transition translate transmit transport traverse tree tried trigger true truncate
truncated trust trusted try trying tuple turn twice type types unable unauthenticated unauthorized unavailable unbound
undefined under underflow unexpected unexpectedly unhandled unicode uninitialized union unique unit unknown unless unlock
unmarshal unpack unparseable unreachable unreadable unrecognized unregistered unresolved unsafe unset unsigned unsupported
unterminated until unused up update updated updating upgrade upload upon upper uri url usable usage use used user users uses
using utf valid validate validated validation validator value values variable vector verification verified verify version
versions via view violated violates violation virtual visible void volume wait waited waiting want warn warning was way we web
well went were what when where which while who whom whose why width will window wire with within without word words work
worker workers working would wrap wrapped wrapper writable write writer writing written wrong xml yaml year yet yield you your
zero zip zone`

// DartLibraries are packages.
const DartLibraries = `flutter flutter_test flutter_riverpod riverpod bloc flutter_bloc provider http dio get async
stack_trace test_api test sentry firebase_core rxdart shelf grpc collection mobx go_router`

// NodeCore are files of Node before release 16.
const NodeCore = `_http_client.js _http_server.js _stream_readable.js _stream_writable.js assert.js buffer.js child_process.js
dns.js events.js fs.js http.js https.js module.js net.js readline.js stream.js timers.js tls.js util.js vm.js zlib.js`

// DotnetLibraries are beginnings of namespaces.
const DotnetLibraries = `Autofac AutoMapper Castle Dapper Grpc Hangfire MassTransit MediatR Microsoft Mono Moq MySql
Newtonsoft NHibernate NLog Npgsql NUnit Polly RabbitMQ RestSharp Serilog StackExchange Swashbuckle System Unity UnityEngine
Xunit`

// PhpLibraries are vendors of packages, and classes of the language.
const PhpLibraries = `Composer Doctrine GuzzleHttp Illuminate Laravel League Monolog PDO PDOStatement PHPUnit Predis Psr React
Reflection ReflectionMethod Slim Swoole Symfony Twig yii Zend Laminas`

// Installed are folders of libraries.
const Installed = `/node_modules/ /site-packages/ /dist-packages/ /gems/ /vendor/ /pkg/mod/ /.cargo/registry/ /rustc/
/.pub-cache/ /deps/ /.julia/packages/ /lib/ruby/ /lib/python /usr/lib/ /usr/local/go/ /go/src/ /lib/x86_64 /lib/aarch64`

// PhpPlumbing are functions of the language that only call others.
const PhpPlumbing = `call_user_func call_user_func_array array_map array_walk array_filter array_reduce usort uasort uksort
iterator_apply preg_replace_callback require require_once include include_once`

// RCore are functions that raise errors or make calls.
const RCore = `stop stopifnot warning eval evalq withCallingHandlers tryCatch tryCatchList tryCatchOne doTryCatch try source
withVisible signalCondition do.call`

// NativeLoggers are parts of names of functions that report errors.
const NativeLoggers = `LogMessage FatalMessage QMessageLogger:: logging::CheckError StackTrace::StackTrace CollectStackTrace
DumpStackTrace FailureSignalHandler StackDumpSignalHandler NSException`

// GoPlainErrors are types of errors that only have a message.
const GoPlainErrors = `*errors.errorString *errors.joinError *errors.fundamental *errors.withStack *errors.withMessage
*fmt.wrapError *fmt.wrapErrors runtime.errorString runtime.plainError runtime.boundsError runtime.errorAddressString`
