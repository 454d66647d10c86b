"""Language data for the tokeniser: function words, pairs of characters, courtesies, months.

Function words (articles, pronouns, auxiliaries, question words) don't say what a text is about, but they
reveal its language. The lists are deliberately short: a missing word is weighed by its rarity like any other,
while a word listed by mistake can never be found. All words are lower-case and without Latin accents.
Data only.
"""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": """
    a about actually after again all also although always am an and another any anybody anyone anything
    are as at away be because been before being between both but by can cannot cant could couldnt did
    didnt do does doesnt doing done dont down during each either else ever every everyone everything few
    for from get gets getting give given goes going gonna got had has hasnt have havent having he hello
    her here hers herself hey hi him himself his how however i id if ill im in into is isnt it its itself
    ive just knew know known let lets like liked ll look lot lots made make makes making many may maybe me
    might mine more most much must my myself need needs neither never no nobody none nor not nothing now
    of off often oh ok okay on once one only onto or other others our ours ourselves out over own per
    please put quite rather re really recall remember said same say says see seem seems shall she should
    so some somebody someone something sometimes somewhere still such sure take tell than thank thanks
    that thats the their theirs them themselves then there these they theyre thing things think this those
    though through thus to together too toward towards try under until up upon us use used user users uses
    using usually ve very via want wanted wants was wasnt way we well were what whatever whats when
    whenever where wherever whether which while who whoever whom whos whose why will with within without
    wont would yeah yes yet you youd youll your youre yours yourself youve
    """,
        "german": """
    ab aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis
    bist bitte da damit danach dann das dass dein deine deinem deinen deiner dem den denn der des dich die
    dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines einige
    er es etwas euch euer eure fur gegen gehabt gern gerne gewesen gibt hab habe haben hast hat hatte
    hatten hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jedem jeden
    jeder jedes jetzt kann kannst kein keine keinen keiner konnen konnte mal man mehr mein meine meinem
    meinen meiner meines mich mir mit mochte muss nach nicht nichts noch nun nur ob oder ohne schon sehr
    sein seine seinem seinen seiner seit sich sie sind so soll sollte sondern uber um und uns unser unsere
    unter viel vom von vor wann war waren warum was weg weil welche welchem welchen welcher welches wem
    wen wenn wer werde werden wessen wie wieder will wir wird wo wohin womit wurde wurden zu zum zur
    """,
        "french": """
    a ai aie as au aussi autre aux avait avec avez avoir avons c ca car ce ceci cela ces cet cette chez ci
    comme comment d dans de des deux donc dont du elle elles en encore entre es est et etait etaient ete
    etes etre eu eux fait font hier il ils j je l la le les leur leurs lui m ma mais me meme mes moi moins
    mon n ne ni non nos notre nous on ont ou par parce pas peut peux plus pour pourquoi qu quand que quel
    quelle quelles quels qui quoi s sa sans se sera ses si son sont sous suis sur t ta te tes toi ton tous
    tout toute toutes tres tu un une vers veux voici voila vont vos votre vous y
    """,
        "spanish": """
    a al algo alguien algun alguna ante antes aqui asi aun aunque cada casi como con contra cual cuales
    cuando cuanto cuantos de del desde donde dos durante e el ella ellas ellos en entre era eran eres es
    esa esas ese eso esos esta estaba estan estar estas este esto estos estoy fue fueron fui ha habia hace
    hacia han hasta hay he hemos la las le les lo los mas me mi mia mio mis mucho muy nada ni no nos
    nosotros nuestra nuestro o os otra otro para pero poco por porque pues que quien quienes se sea ser si
    sido sin sobre solo son soy su sus suya suyo tambien tan tanto te tengo tiene tienen tienes ti todo
    todos tu tus tuya tuyo un una uno unos y ya yo
    """,
        "portuguese": """
    a ao aos aquela aquele aqui as ate cada com como da das de dela dele deles depois do dos e ela elas
    ele eles em entre era eram essa esse esta estao estava estou eu foi foram fui ha isso isto ja la lhe
    mais mas me mesmo meu meus minha minhas muito na nao nas nem no nos nossa nosso num numa o onde os ou
    para pela pelo por porque qual quais quando que quem sao se sem ser seu seus sim so sobre sou sua suas
    tambem tem tenho tens ter teu teus tinha tu tua tuas um uma umas uns voce voces
    """,
        "italian": """
    a ad agli ai al alla alle allo anche ancora avere aveva c che chi ci cio come con cosa cui da dagli
    dai dal dalla dalle dei del della delle dello di dove e ed era erano essere fa fra gia gli ha hai
    hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio molto ne negli nei nel nella
    nelle no noi non nostra nostro o per perche piu poi qual quale quali quando quanto quella quelle
    quelli quello questa queste questi questo qui se sei si sia sono sta stato su sua sue sugli sui sul
    sulla suo suoi te ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi
    """,
        "dutch": """
    aan al alles als altijd andere ben bij bent daar dan dat de deze die dit doe doen door dus een en er
    ge geen geweest haar had heb hebben hebt heeft hem hen het hier hij hoe hun ik in is ja je jij jou
    jouw jullie kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat
    onder ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want
    waren was wat we wel welk welke werd wie wij wil worden wordt zal ze zich zij zijn zo zonder zou
    """,
        "swedish": """
    alla allt an ar att av blev bli bra da dar de dem den denna det detta dig din dina ditt du dom efter
    eller en ett fast fick for fran ha had hade han har hennes henne her hon honom hur i icke in inte jag
    ju kan kunde man med mellan men mig min mina mitt mot mycket nagon nagot nar nu och om oss pa sa sadan
    sig sin sina sitt skulle som till under ut vad var vara varfor varit vem vi vid vilken vill
    """,
        "polish": """
    a aby ale bardzo bez bo bedzie by byc byl byla bylo byly co czy czym da dla do dlaczego gdy gdzie go i
    ich ile im inny ja jak jaka jaki jakie jako je jego jej jest jestem jeszcze jesli juz kiedy kto ktora
    ktore ktory lub ma mam mamy masz mi mnie moj moja moje mu my na nad nam nas nasz nie nic niz no o od
    on ona oni ono oraz po pod przed przez przy sa sie skad sobie swoj swoja ta tak tam te tego tej ten to
    toba tu twoj twoja twoje ty tych tylko tym u w was we wy z za ze
    """,
        "turkish": """
    acaba ama ancak artik az bana bazen bazi belki ben bende beni benim bir biri biz bize bizim bu bunu
    bunun cok cunku da daha de degil diye eger en gibi hangi hep her hic icin ile ise iste kac kadar ki
    kim kime mi mu nasil ne neden nedir nerede nereye niye o olan olarak oldu olmak ona onlar onu onun
    sana sen seni senin siz su tum ve veya vardi var ya yani yok
    """,
        "indonesian": """
    ada adalah akan aku anda apa apakah atau bagaimana bahwa bisa bukan dalam dan dari dengan di dia ini
    itu juga kalau kami kamu kapan karena ke kenapa kita lagi mana mereka milik namun nya oleh pada saja
    saya sebuah seperti siapa sudah telah tentang tidak untuk yang
    """,
        "vietnamese": """
    anh ay ban bi cai cho co cua cung da dang day de den do duoc gi hay khi khong la lam luc ma minh mot
    nao nay nen neu nguoi nhu nhung o ra rat roi sao se ta thi thi toi tu va vao ve vi voi
    """,
        "russian": """
    а без бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее
    если есть еще ж же за зачем здесь и из или им их к как какая какие какой какое когда кого кому который
    кто куда ли лишь меня мне мной мои мой моя мое моего моей мы на над надо нам нас наш не него нее нет
    ни них но ну о об один он она они оно от очень по под потому почему при про с сам свой своя себя
    сейчас со так такой там тебе тебя тем то тобой того тоже той только том ты твой твоя твои у уж уже
    чего чей чем что чтобы чье эта эти это этого этой этом этот я
    """,
        "greek": """
    αλλα αν ανα απο αυτα αυτη αυτο αυτος για δεν ειμαι ειναι εισαι εκει ενα ενας εχει εχεις εχω η ηταν θα
    και κατα με μεσα μετα μη μην μια μου μας να ο οι ολα οπως οταν οτι ουτε ποια ποιο ποιος ποτε που πως
    σας σε στα στη στην στο στον σου τα τη την της τι τις το τον του τους των
    """,
        "arabic": """
    ان انا انت انه اي اين الى التي الذي اذا او بعد بين تلك ثم حتى حيث ذلك عن على عند عندي في قبل قد كان
    كانت كل كم كيف كنت لا لم لن له لها لي لك لماذا ليس ما ماذا متى مع من منذ نحن هذا هذه هل هم هناك هو هي
    و يا
    """,
        "hindi": """
    अब आप आपका आपकी और इस इसका उन उनका उस उसका उसकी एक ऐसा कब कर करता करते करना कहा कहां कहाँ का कि किस
    किसका की कुछ के को कोई कौन क्या क्यों गया जब जो तक तुम तो था थी थे ने पर बहुत भी मुझे में मेरा मेरी
    मेरे मैं यह ये रहा रही रहे वह वे से हम हमारा ही हुआ हुई हूं हूँ है हैं हो
    """,
    }.items()
}

# Function words of other languages that are also English words, names or abbreviations. They say nothing
# about a text's language: "car" alone asks about a car, "Ben" about Ben, and "vitamin C" is not French.
ENGLISH_TOO = frozenset(
    """
    ad ada ai al ale ama ate ban bana ben bent bi bin biz bo bra car casi chi cho co come comment con contra
    da dan dang das day del den dia die dies dig din dina dir dom door dos dove ed elle encore era est
    eu fa fast fran fur gi gia ha hat hay hem hen ho hun jest kan kim li lo lui ma mal man mana mas
    men mi mia min minh mis mitt moi mot nada nas nay nic nun op pa par pas pod poco pour ra rat roi sea
    sen sera sim sin sobre solo son sous stato su sue sui sur ta tak tam tan te ten ti till todo ton tot tout
    tutti ty un uno va van var vers vi vos war wel wen wie wil ya yang yani zo
    c d j l m n s t w z
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)

# Pairs of characters that are everywhere in scripts without spaces: particles, copulas, question words.
COMMON_PAIRS = frozenset(
    """
    です ます した して いる いた いま ない なん から まで こと もの これ それ あれ どこ どれ どの
    この その あの どう だれ いつ なに 何で 何を 何が 何は すか たか たは ので のは のが のを のに
    には では とは って たい れる られ さん ちゃ んだ うか てい るの った でし しょ かな よね だよ
    ある あり りま せん くだ ださ さい いて とき 私の 私は 私が 僕の 僕は 俺の 誰が 誰の 誰で は何
    は誰 はど はい はな が好 の名 名前 いつ も の 什么 怎么 哪里 哪个 为什 么时 时候 我的 你的 他的
    她的 我在 我是 你是 是什 是谁 的是 了吗 有没 没有 可以 知道 一个 这个 那个 多少 谁是 是不 不是
    么的 里的 叫什 我有 我们 你们 他们 什麼 怎麼 哪裡 時候 我們 這個 那個 是誰 입니 니다 습니 해요
    에요 이에 예요 어요 아요 나요 내가 나의 제가 저는 나는 무엇 어디 언제 누구 어떤 하는 하고 에서
    으로 있는 있어 있나 뭐야 뭐예 인가 가요 는지 합니 했어 했나 누가 무슨 우리 คือ อะไ ะไร ของ ที่
    ไหน ใคร เมื ื่อ อไร ไร ฉัน ผม เป็ ็น ครั คะ ค่ะ ไหม มี ใน และ ได้ ไม่
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)

# Greetings, thanks and the like. A sentence of nothing else asks for nothing.
COURTESIES = frozenset(
    """
    afternoon again awesome bye cheers cool continue cya evening excellent fine funny gn goodbye goodnight
    good great haha hahaha happy help helped hello hey hi laugh lmao lol love lovely luck morning nice night
    np perfect problem rofl see shorter longer sleep soon sorry super sweet test testing thank thanks thx
    tomorrow weekend welcome well wonderful wow yay yo
    abend danke dank dankeschon gehts gern gerne genau gut gute guten guter klar klasse mach machs morgen
    nacht perfekt prima schon schonen schones servus spater spitze tag tschuss viel vielen wochenende
    adieu beaucoup bien bon bonjour bonne bonsoir bravo coucou demain geniale genial journee merci nuit
    parfait salut soir soiree
    adios buen buena buenas bueno buenos claro dia dias gracias hasta hola luego manana muchas noche noches
    perfecto tarde tardes vale
    bella buona buongiorno buonasera buonanotte ciao domani giorno grazie mille notte ottimo perfetto sera
    ate amanha boa boas bom bons ola obrigada obrigado noite otimo perfeito valeu
    bedankt dag dankjewel doei goed goede goedemorgen goedenavond hoi leuk mooi tot welterusten
    czesc dobranoc dobry dobra dobre dzieki dzien dziekuje hej jutra noc swietnie wieczor
    вечер день добрый доброе здорово здравствуйте завтра ладно ночи отлично пока понятно привет спасибо
    спокойной супер утро большое
    gunaydin geceler iyi merhaba selam tesekkurler tesekkur ederim harika sagol
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)

# A sentence of courtesies that begins like this, and has a word for oneself, is a question: "how do I sleep".
ASKING = frozenset(
    """
    what whats when whens where wheres which who whos why how hows was wann wo wer wie warum welche welcher
    welches que quand ou qui quoi comment quel quelle cuando donde quien como cual quando onde quem qual che
    cosa dove chi come quale wat wanneer waar hoe что когда где кто как почему
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)
ABOUT_ONESELF = frozenset(
    """
    i ive id me my mine myself ich mich mir mein meine meinem meinen meiner je j mon ma mes moi yo mi mis me
    tengo eu meu minha tenho io mio mia ho ik mijn я меня мне мой моя мое мои
    """.split()  # noqa: SIM905 - a list of words is not easier to read
)
OWN_TOPICS = frozenset({"sleep", "test", "weekend"})
"""Courtesies ("sleep well") that are topics behind "my"."""

EVERYTHING = frozenset(
    """
    everything anything all whatever every any alles alle allem sämtliche jegliche tout toute tous
    toutes todo toda todos todas tudo tutto tutta tutti tutte wszystko wszystkie wszystkich всё все всех
    hepsini herşeyi tüm samtliche tum herseyi allt alt
    """.split()  # noqa: SIM905
)
"""Words (folded or not) that ask for everything about something."""
EVERYTHING_UNSPACED = (
    "に関するすべて",
    "についてすべて",
    "に関する全て",
    "に関すること",
    "について全部",
    "のことを全部",
    "のこと全部",
    "について",
    "のこと",
    "すべて",
    "全て",
    "全部",
    "关于",
    "關於",
    "的一切",
    "的所有",
    "一切",
    "所有",
    "에 대한 모든",
    "에 관한 모든",
    "에 대해",
    "모든 것",
    "모두",
    "전부",
    "كل شيء عن",
    "كل ما يتعلق",
    "כל מה ש",
    "הכל על",
)
LISTING = frozenset(
    """
    information info infos details detail data facts memories entries records stuff things informationen
    angaben daten erinnerungen informations détails donnees données souvenirs información informacion
    datos detalles recuerdos informações informacoes dados detalhes informazioni dati dettagli ricordi
    informatie gegevens herinneringen informacje dane информацию сведения данные bilgi bilgileri
    """.split()  # noqa: SIM905
)
"""Words (folded or not) for what is listed when somebody asks for "information about Rome"."""
SAYING = frozenset(
    """
    said told mentioned wrote written know known remember remembered stored saved related regarding
    concerning you i i've ive we gesagt erzählt erzahlt erwähnt erwahnt weißt weisst gespeichert ich dit
    raconté raconte sais concernant je dije dicho conté sabes yo disse sabe eu detto sai io gezegd weet
    ik powiedziałem powiedzialem wiesz сказал сказала знаешь hakkında hakkinda
    """.split()  # noqa: SIM905
)
"""Words (folded or not) by which a request goes on about what was said, which is not what it is about."""
NEGATIONS = frozenset(
    """
    not no never none without nor cannot dont doesnt didnt isnt wasnt wont cant nicht kein keine keinen
    keiner nie niemals ohne pas jamais aucun sans nunca jamás jamas sin não nao nem sem non mai senza
    niet geen nooit zonder nigdy bez не нет никогда без değil degil yok
    """.split()  # noqa: SIM905
)
DIGITS = {
    word: str(digit)
    for line in (
        "zero one two three four five six seven eight nine",
        "null eins zwei drei vier funf sechs sieben acht neun",
        "zero un deux trois quatre cinq six sept huit neuf",
        "cero uno dos tres cuatro cinco seis siete ocho nueve",
        "zero um dois tres quatro cinco seis sete oito nove",
        "zero uno due tre quattro cinque sei sette otto nove",
    )
    for digit, word in enumerate(line.split())
} | {"oh": "0"}
"""Spelled digits, folded."""

MONTHS: dict[str, int] = {
    name: number
    for year in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar marz april mai juni juli august september oktober november dezember",
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia",
        "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    )
    for number, name in enumerate(year.split(), start=1)
}
