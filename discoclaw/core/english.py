"""Language data for the tokeniser, English alone: common words, irregular forms, synonyms.

All words are lower-case. Data only; the other languages are in `languages`.
"""

# Words that are common in any conversation. Sharing just one of them is no evidence that two texts are
# related, unless the query has no other word.
COMMON = """
    able afternoon age ago allow amazing amount answer appear area ask attempt attention avoid awesome
    back bad beautiful begin believe best better big bit bottom break bring build busy buy call care carry
    case cause certain chance change check choose class clear close come common compare complete condition
    consider contain continue control cool correct count course cover create current cut daily date day
    deal decide describe detail develop difference different difficult direction discuss drop due easy
    effect effort end enjoy enough entire especially evening event exactly example excite exciting expect
    experience explain face fact fail family far fast favorite favourite feel feeling fill find fine
    finish first follow forget form free friend front full fun future general gift give glad good great
    group guess guy half hand happen happy hard hate hear help high hold home hope hour house huge idea
    important improve include increase instead interest interesting involve item job join keep kind large
    last late lately later lead learn leave left less level lie life line list listen little live local
    log long lose love low main manage mark material matter mean meet member mention method middle mind
    minute mistake modern moment money month morning move name near new news next nice night normal note
    notice number object offer often old open opinion order original own page pair part particular party
    pass past pay people perfect period person pick piece place plan play point position possible prefer
    prepare present press pretty previous private problem process produce product program progress promise
    proper public pull purpose push quality question quick quickly quiet raise range rate reach react read
    ready real reason receive recent recently record reduce refer refuse region regular relate remain
    remove repeat replace reply report require rest result return right roll rule run save scale school
    search second section send sense separate series serve service set settle several share short show
    side sign similar simple single sit size skip slow small solve soon sort sound source space special
    specific spend split stand standard start state stay step stop story strange strong structure stuff
    style subject success suggest support switch system talk task team tend term thank thinking throw tie
    time title today tomorrow tonight top totally touch track treat trouble true trust turn type
    understand unit update usual value various version view visit voice volume wait walk watch wear week
    weekend went whole win wish wonder wonderful word work world worry worth write wrong year yesterday
    young monday tuesday wednesday thursday friday saturday sunday morning evening hour spring summer autumn
    winter one two three four five six seven eight nine ten hundred thousand
    """.split()  # noqa: SIM905 - a list of words is not easier to read

# English past and plural forms that the stemmer does not reduce to their base.
IRREGULAR = {
    form: pair.split("<")[0]
    for pair in [
        "become<became",
        "begin<began,begun",
        "bite<bit,bitten",
        "blow<blew,blown",
        "break<broke,broken",
        "bring<brought",
        "build<built",
        "buy<bought",
        "catch<caught",
        "choose<chose,chosen",
        "come<came",
        "deal<dealt",
        "dig<dug",
        "draw<drew,drawn",
        "dream<dreamt",
        "drink<drank,drunk",
        "drive<drove,driven",
        "eat<ate,eaten",
        "fall<fell,fallen",
        "feed<fed",
        "feel<felt",
        "fight<fought",
        "find<found",
        "fly<flew,flown",
        "forget<forgot,forgotten",
        "forgive<forgave,forgiven",
        "freeze<froze,frozen",
        "grow<grew,grown",
        "hang<hung",
        "hear<heard",
        "hide<hid,hidden",
        "hold<held",
        "keep<kept",
        "lead<led",
        "learn<learnt",
        "leave<left",
        "lend<lent",
        "lose<lost",
        "mean<meant",
        "meet<met",
        "pay<paid",
        "ride<rode,ridden",
        "ring<rang,rung",
        "rise<risen",
        "run<ran",
        "sell<sold",
        "send<sent",
        "sew<sewn",
        "shake<shook,shaken",
        "shine<shone",
        "shoot<shot",
        "show<shown",
        "sing<sang,sung",
        "sink<sank,sunk",
        "sit<sat",
        "sleep<slept",
        "speak<spoke,spoken",
        "spend<spent",
        "stand<stood",
        "steal<stole,stolen",
        "stick<stuck",
        "strike<struck",
        "swear<swore,sworn",
        "sweep<swept",
        "swim<swam,swum",
        "teach<taught",
        "tear<tore,torn",
        "throw<threw,thrown",
        "understand<understood",
        "wake<woke,woken",
        "wear<wore,worn",
        "weave<wove,woven",
        "win<won",
        "write<wrote,written",
        "child<children",
        "man<men",
        "woman<women",
        "foot<feet",
        "tooth<teeth",
        "goose<geese",
        "mouse<mice",
        "wife<wives",
        "knife<knives",
        "shelf<shelves",
        "wolf<wolves",
        "half<halves",
        "thief<thieves",
        "loaf<loaves",
        "colour<color",
        "favourite<favorite",
        "neighbour<neighbor",
        "grey<gray",
        "theatre<theater",
        "centre<center",
    ]
    for form in pair.split("<")[1].split(",")
}

# Everyday English synonyms and abbreviations, and what a general word includes. The words of a line stand for
# each other; words after "<" are found by the words before it, but not the other way round.
SAME = """
    one 1
    two 2
    three 3
    four 4
    five 5
    six 6
    seven 7
    eight 8
    nine 9
    ten 10
    mother mom mum mama mummy mommy
    father dad daddy papa
    grandmother grandma granny nan nana
    grandfather grandpa grandad
    sister sis
    brother bro
    parent < mother mom mum father dad
    sibling < sister brother
    spouse partner < husband wife
    grandparent < grandmother grandma grandfather grandpa
    child kid < son daughter baby toddler
    relative < aunt uncle cousin niece nephew grandmother grandfather
    boyfriend girlfriend partner
    colleague coworker workmate
    boss manager supervisor
    flatmate roommate housemate
    job work profession occupation career employment < employer
    company employer firm
    salary pay wage income
    home house < flat apartment
    flat apartment
    city town
    country nation
    pet < dog cat hamster rabbit parrot budgie tortoise turtle goldfish guinea
    dog puppy
    cat kitten kitty
    car auto automobile vehicle
    vehicle < car motorbike motorcycle scooter van truck bicycle bike
    bicycle bike cycle
    motorcycle motorbike
    phone telephone mobile cellphone smartphone
    computer pc < laptop
    laptop notebook
    television tv telly
    photo photograph picture
    movie film
    music song
    instrument < guitar piano violin drum flute cello saxophone trumpet clarinet harp ukulele banjo accordion
    sport < football soccer tennis basketball swim run hockey volleyball rugby golf judo karate
    soccer football
    hobby pastime interest
    drink beverage < coffee tea beer wine juice cocktail
    food meal dish cuisine
    breakfast lunch dinner < meal
    dinner supper
    sweet candy dessert
    holiday vacation trip travel journey
    birthday < born
    birth < born
    wedding marriage marry < spouse
    doctor physician gp
    medicine medication drug pill
    ill sick unwell illness sickness disease
    allergy < allergic
    hospital clinic
    injure injury hurt
    buy purchase
    begin start
    end finish
    quit resign
    repair fix mend
    build construct
    cook bake
    speak talk
    learn study
    teach < teacher
    live reside residence dwell
    move relocate
    big large huge
    small little tiny
    cheap inexpensive
    cost price expensive
    gift present
    friend buddy pal mate
    shop store
    supermarket grocery groceries
    book novel
    author writer
    university uni college
    school < teacher pupil
    exam test
    degree diploma
    lawyer attorney solicitor
    address < street road avenue lane
    email mail
    password passphrase passcode
    database db < postgres postgresql mysql sqlite mongodb redis
    kubernetes k8s kube
    javascript js
    typescript ts
    python py
    postgres postgresql
    repository repo
    application app
    configuration config
    documentation docs
    environment env
    production prod
    operating < linux windows macos ubuntu debian
    language < english german french spanish portuguese italian dutch russian japanese chinese korean arabic
    color < red blue green yellow orange purple pink black white brown gray
    garden yard
    autumn fall
    rubbish trash garbage
    couch sofa
    refrigerator fridge
    sneaker trainer
    glasses spectacles
    church < religion
    yoga meditation
    gym workout exercise fitness
"""

# What an everyday topic includes, for whoever names what is to be forgotten or changed: "my car" may be a
# Tesla. It is too wide for finding what answers a question.
TOPICS = """
    car vehicle auto < tesla bmw audi toyota honda ford volkswagen vw mercedes skoda fiat renault
        peugeot volvo kia hyundai mazda nissan opel golf polo drive driver licence license parking
    bike bicycle < cycle cycling ride canyon brompton
    job work career profession employer < employed nurse teacher engineer doctor lawyer plumber
        electrician baker waiter waitress barista cook chef driver developer programmer designer
        accountant manager conductor clerk cashier mechanic carpenter librarian journalist editor
        pharmacist architect consultant freelance intern shift unemployed retired promotion colleague
        boss office
    boss colleague < manager supervisor team lead
    salary pay income money wage < earn bonus raise
    finance finances financial money < salary earn debt owe overdraft loan mortgage savings bank invest
        shares pension bonus tax credit
    debt < owe loan overdraft mortgage credit
    family < mother father mum mom dad parent sister brother son daughter grandmother grandfather aunt
        uncle cousin niece nephew wife husband child twin
    kid child children < son daughter baby pregnant toddler twin kindergarten nursery school
    husband wife spouse marriage partner < married marry wedding divorce engaged
    relationship love < married marry wedding divorce engaged girlfriend boyfriend date dating single ex
        broke partner
    divorce < separate separated split
    ex < divorce broke split
    breakup < broke split ex
    pet animal < dog cat hamster rabbit parrot budgie tortoise turtle goldfish guinea pony horse snake
        gecko hen labrador beagle poodle terrier collie retriever dachshund pug spaniel siamese tabby
        persian puppy kitten rescue
    dog < labrador beagle poodle terrier collie retriever dachshund pug spaniel puppy
    cat < siamese tabby persian kitten
    home house place housing < flat apartment rent landlord landlady lease mortgage room roommate
        flatmate move live
    rent < landlord landlady lease tenant flat
    address < live street road avenue lane flat apartment postcode zip
    city town hometown < live born grew
    diet food eating < vegan vegetarian pescatarian keto halal kosher gluten lactose meat allergic eat
    allergy allergies < allergic intolerant intolerance pollen hayfever
    drink drinking alcohol < beer wine whisky gin vodka sober rum cocktail
    smoking < smoke cigarette vape
    health medical illness condition < diabetes asthma cancer migraine surgery hospital insulin
        metformin medication tablet blood diagnose allergic doctor clinic therapy therapist depression
        anxiety arthritis epilepsy injury pill kidney heart knee back pain
    medication medicine med pill < tablet insulin metformin ibuprofen antidepressant dose prescribe
        inhaler statin
    mental therapy therapist depression < therapist therapy depress anxiety panic psychiatrist burnout
        antidepressant
    weight < kg kilo pound stone lose gain
    height < tall cm metre
    look appearance < hair tall tattoo beard glasses eye
    age < old born birthday turn
    birthday < born turn
    religion religious faith belief < christian catholic protestant muslim islam jewish hindu buddhist
        atheist mass pray church
    politics political < vote election party greens labour tory conservative democrat republican
        socialist
    school education study studies < degree uni university college course exam thesis bachelor master
        phd graduate dropped student
    exam test < resit pass fail grade
    sport sports training exercise < run running football tennis swim gym climb climbing bouldering yoga
        marathon hockey volleyball rugby boxing judo karate ski surf team
    team club < support supporter fan season
    gym fitness < membership workout lift deadlift squat trainer
    music < sing band concert choir guitar piano violin drum cello gig spotify playlist
    instrument < guitar piano violin drum cello bass flute trumpet saxophone
    hobby hobbies pastime < collect knit crochet paint draw garden bake climb photograph fish chess
    game gaming games < play player playstation xbox nintendo switch steam minecraft console chess
        monopoly
    phone mobile < iphone android pixel samsung
    number contact < phone mobile mail
    computer laptop pc < macbook thinkpad windows linux mac desktop
    film movie series show tv < netflix cinema watch
    book reading < read novel author library
    holiday trip travel vacation < fly flight hotel visit abroad airbnb train camp tour beach
    flight < fly airport
    moving move < relocate flat city
    sleep < insomnia nap night
    insurance < policy insure insurer
    password login pin code < wifi netflix account
    language languages < speak fluent learn duolingo
    plan plans < want hope going
"""
