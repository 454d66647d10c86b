"""Technical words, for telling "child process" from a child and "bank of memory" from a bank. Data only.

They are of any language, like the words they stand beside. `word-` is the beginning of a word.
"""

TECHNICAL = """
    class- clas- klas- klass- klase- process- proces- prozess- proses- proceso- processo- proc- thread- node
    nodo nodos noeud- nœud- knoten- knot- knooppunt- nod element- elem- eleman- component- komponen-
    composant- composan- window- fenster- fenêtre- ventana- janela- finestra- okno vindu- widget- dialog-
    table- tabl- tabel- tabelle- tabla- tabela- tablo- row zeile- column- field champ feld- campo pole
    director- répertoire- repertorio- katalog- mapp verzeichnis- folder- carpeta- pasta- cartella- ordner-
    dossier- klasör- dizin- commit- branch- repo- module- modul- package- paket- pakiet- paquet- object-
    objekt- objeto- objet- oggetto- obiekt- nesne- prop selector- key schlüssel- clave- chave- chiave- font-
    schrift- police- pid daemon- fork domain- chain dict scope- view- frame- route- router- container-
    pointer- pointeur- zeiger- puntero- workflow- div tag record job server- serveur- servidor- kill spawn-
    react- html- css xml json yaml dom git kernel- bean api sdk url uri http tcp dns ip ipv4- ipv6- mac
    email- mail- memory- speicher- memoria- mémoire- pamięci- pamięć- bellek- geheugen- minne- cpu gpu ram
    cache- buffer- heap- stack- queue- register- byte bit endpoint- check- service dienst- servicio-
    serviço- microservice- micro- docker- kubernetes- pod cluster- cloud- database- datenbank- sql index-
    schema- query- datei- file fichier- archivo- arquivo- plik- fil dosya- software- hardware- computer-
    compiler- code código- codice- kod program- programm- programa- linux- unix- windows- ubuntu- debian-
    python- java- javascript- typescript- rust golang- c++ php ruby- site website- web project- projekt-
    proyecto- projeto- progetto- company- firma- unternehmen- gesellschaft- firme- société- societ- empresa-
    azienda- bedrijf- företag- spółk- spolk- şirket- sirket- perusahaan- board carte scheda- placa płyt-
    plyt- kart karta- plan language- sprache- lengua- lingua- langue- tongue- earth nature technical-
    technisch- technique- técnic- tecnic- tekn- techn- tehn- tekno- header- token- jwt claim- ticket- task
    epic page seite- página- pagina- strona- sayfa- theme thema- menu button link script- plugin- wizard-
    fix command- brew- flutter- npm yarn encoding- numeral- calculus- printer- drucker- steps step release-
    production- prod staging- beta test tests version- config- setting- state status- mode dark null true
    false type typ typen- enum- struct- interface- trait- variable- argument- parameter- funktion- function-
    función- funzione- fonction- methode- method- método- metodo- méthode- tree baum- arbre- árbol- albero-
    drzewo- ağaç- wallet- contract- bitcoin- ledger- crypto- socket- port- proxy- gateway- vlan subnet-
    sensor- device- gerät- app application- anwendung- aplicación- aplicativo- applicazione- aplikacja-
    uygulama- hash sender- receiver- absender- virtual- процесс- класс- узел- узла- узлы- элемент-
    компонент- окно- окна- таблиц- поле- каталог- папк- коммит- ветк- модул- пакет- объект- ключ- шрифт-
    поток- демон- сервер- сервис- код- файл- проект- компани- плат- памят- технич- тех- почт- электронн-
    сайт- интерфейс- διεργασ- κλάσ- κόμβ- στοιχεί- παράθυρ- πίνακ- φάκελ- αρχεί- αντικείμεν- διακομιστ-
    μνήμη- τεχνικ- ηλεκτρονικ- ταχυδρομ- ιστοσελ- عملية- العملية- صنف- كائن- عقدة- عنصر- نافذة- مجلد- ملف-
    خادم- ذاكرة- برمج- تقن- بريد- الكترون- موقع- شركة- مشروع- תהליך- מחלק- אובייקט- צומת- צמת- רכיב- חלון-
    תיקי- קובץ- שרת- זיכרון- טכני- דוא- אימייל- אתר- חברה- פרויקט- प्रोसेस- क्लास- नोड- एलिमेंट- विंडो-
    फ़ाइल- फाइल- फ़ोल्डर- फोल्डर- सर्वर- मेमोरी- ईमेल- आईपी- वेबसाइट- 프로세스- 클래스- 노드- 요소-
    컴포넌트- 창- 테이블- 폴더- 파일- 객체- 서버- 메모리- 이메일- 메일- 아이피- 포인터- 웹사이트- 사이트-
    alt üst- süreç- surec- işlem- islem- sınıf- sinif- düğüm- dugum- öğe- oge pencere- eposta- tags rows
    keys nodes jobs fields records pages sites pods urls apis forks types states modes boards buttons links
    ips
"""

# Words that may stand between the two: "child of the process".
JOINING = """
    of the a an its this that each every all in to de la le les du des del di della dello do da dos von der
    die das dem den van het av på der und and y e et и в του της στο το
"""
